"""The agent's user interface: a chat in a terminal, and single runs for scripts.

- `chat`: reads input, runs turns, shows them.
- `background_view`: background commands and agents, live and by `/tasks`.
- `chat_input`: menus, questions, and what was sent in the middle of a turn and waits.
- `turn_view`: what a turn prints.
- `text_renderer`: markdown, diffs and plain lines as terminal text.
- `error_text`: errors and retries in one line, with the remedy.
- `event_text`: one sentence for each event.
- `session_list`: sessions by title, age and cost, and the end of one.
- `slash_commands`: the commands that start with a slash, and what they do.
- `terminal`: a full terminal, and one that can only print and read lines.
- `early_input`: the input line while the program starts.
- `prompt_input`: the input line: keys, pasted text and history.
- `completion`: commands and files that are offered while a person types.
- `user_input`: what was typed as a message, with the images that it names or the clipboard has.
- `render`: diffs, growing markdown and the status line.
- `inspect_commands`: slash commands that show what a session has.
- `layer_commands`: slash commands that show what layers did: cuts, acts, recalled memories.
- `custom_commands`: commands from markdown files.
- `cost_text`: dollars in words.
- `choice_menu`: a list that one key chooses from.
- `open_questions`: what is asked now, and when keys are its answer.
- `input_keys`: keys of menus, of the queue, for an editor and for images.
- `rewind_menu`: choosing a message to go back to.
- `permission_prompt`: asking whether a tool may run.
- `headless`: one prompt, one turn, output as text or JSON.
"""
