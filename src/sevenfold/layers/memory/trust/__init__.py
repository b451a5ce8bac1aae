"""Trust: whose words a memory contains, and whether what it names still exists.

- `taint`: attributes each sentence to the user or to other sources in the conversation, and separates a
  person's own words from what they pasted.
- `user_sentences`: the sentences that a user typed, and which of them they assert.
- `evidence`: finds the sentence of the user that a memory rests on.
- `sentence_index`: the user's sentences by their words, and which messages are taken back.
- `near_words`: sentences of the user that share most words with one in other words.
- `quotation`: the user's sentences in place of those that a model put in words of its own.
- `phrases`, `tokens`: a sentence as its words, with the prepositions and conjunctions that lead them.
- `languages`: function words of nine languages.
- `frames`: questions, announcements and corrections around a sentence.
- `replies`: whether what stands behind a sentence is about it.
- `scopes`: whether a sentence limits the next one, or announces something made up.
- `taint_changes`: who asked for a change of a memory.
- `claims`: paths, symbols, commands and URLs that a memory names.
- `verifier`: checks these claims against the project.

All but `verifier` are pure functions over text.
"""
