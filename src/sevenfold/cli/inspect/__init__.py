"""Commands that look at sessions and the set-up: context, stats, spend, doctor."""
