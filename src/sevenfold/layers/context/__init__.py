"""What enters the context beside the conversation: instructions, index, reminders."""
