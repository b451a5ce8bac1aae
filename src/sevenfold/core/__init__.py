"""Values and the arithmetic over them: no files, no network, no clock of its own."""
