"""Trust: whose words a memory contains, and whether what it names still exists.

- `taint`: attributes each sentence to the user or to other sources in the conversation, and separates a
  person's own words from what they pasted.
- `evidence`: finds the sentence of the user that a memory rests on.
- `quotation`: the user's sentence in place of one that a model put in words of its own.
- `phrases`, `tokens`: a sentence as the words that have to be kept, and the function words of a language.
- `word_order`, `numbers`: verbs in one piece, and numbers, dates and times written in one way.
- `languages`: function words of nine languages.
- `frames`: questions, announcements and corrections around a sentence, and what else says the same.
- `replies`: whether a question or thanks behind a sentence is about it.
- `scopes`: whether a sentence limits the next one, or announces something made up.
- `taint_changes`: who asked for a change of a memory.
- `claims`: paths, symbols, commands and URLs that a memory names.
- `verifier`: checks these claims against the project.

All but `verifier` are pure functions over text.
"""
