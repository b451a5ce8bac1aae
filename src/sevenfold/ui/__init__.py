"""`sevenfold ui`: a page on this machine that shows sessions, memories, rules, dreams, spend and the team.

A page of static files asks for data as JSON; every change goes through the functions that the commands use.

- `access`: who may use the page; an ASGI middleware that stands before everything.
- `app`: the web application, its calls as values, its server on a local port, and the files that a browser
  loads, some of them shared with the page of `sevenfold replay`.
- `assets/`: our own scripts and styles.
- `pages`: what a prompt would bring, dreams, what background work spends, and the team; opens these and all
  of the following for one project.
- `sessions`: the list of sessions, one of them, and searching them.
- `conversation`: the messages of a session, as they were said and as they were sent.
- `own_conversation`: the same for our own transcripts, rebuilt byte for byte.
- `blocks`: messages and cuts as the page shows them.
- `memories`: memories, their history, review and rules.
- `live`: running sessions, as a stream of events.
"""
