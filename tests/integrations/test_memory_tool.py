"""The Anthropic memory tool over a project's memories: six commands, and no way out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from anthropic.lib.tools import ToolError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenfold.core.memories import Origin
from sevenfold.integrations.memory_tool import CommandResult, MemoryCommands, async_memory_tool, memory_tool
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from sevenfold.testing import Prompt, Reply, Simulator, call_tool, say
from tests.examples import up_to

MODEL = "claude-opus-5-5"
TEXT = "# Release\nTag first.\nThen push.\n"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryDir]:
    (tmp_path / "app").mkdir()
    with Project.open(tmp_path / "app", home=tmp_path / "home") as project, MemoryDir(project) as memory:
        yield memory


@pytest.fixture
def commands(memory: MemoryDir) -> MemoryCommands:
    return MemoryCommands(memory, session="s1")


def run(commands: MemoryCommands, command: str, **given: object) -> str:
    answer = commands.run({"command": command, **given})
    assert not answer.is_error, answer.text
    return answer.text


def refused(commands: MemoryCommands, command: str, **given: object) -> str:
    answer = commands.run({"command": command, **given})
    assert answer.is_error, answer.text
    return answer.text


def test_a_file_is_created_viewed_and_listed(commands: MemoryCommands) -> None:
    assert run(commands, "create", path="/memories/release.md", file_text=TEXT) == (
        "File created successfully at: /memories/release.md"
    )
    assert run(commands, "view", path="/memories/release.md") == (
        "Here's the content of /memories/release.md with line numbers:\n"
        "     1\t# Release\n     2\tTag first.\n     3\tThen push."
    )
    assert run(commands, "view", path="/memories/release.md", view_range=[2, -1]).endswith(
        "numbers:\n     2\tTag first.\n     3\tThen push."
    )
    assert run(commands, "view", path="/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and "
        "node_modules:\n32B\t/memories\n32B\t/memories/release.md"
    )


def test_a_listing_shows_two_levels_and_counts_what_lies_deeper(commands: MemoryCommands) -> None:
    run(commands, "create", path="/memories/a/b/c.md", file_text="x" * 2_048)
    lines = run(commands, "view", path="/memories/").splitlines()[1:]
    assert lines == ["2.0K\t/memories", "2.0K\t/memories/a", "2.0K\t/memories/a/b"]
    assert run(commands, "view", path="/memories/a").splitlines()[1:] == [
        "2.0K\t/memories/a",
        "2.0K\t/memories/a/b",
        "2.0K\t/memories/a/b/c.md",
    ]


def test_a_text_is_replaced_and_the_place_is_shown(commands: MemoryCommands, memory: MemoryDir) -> None:
    run(commands, "create", path="/memories/release.md", file_text=TEXT)
    answer = run(
        commands, "str_replace", path="/memories/release.md", old_str="Tag first.", new_str="Sign.\nTag."
    )
    assert answer.startswith("The memory file has been edited.")
    assert "     2\tSign.\n     3\tTag." in answer
    assert memory.read("release.md").memory.text == "# Release\nSign.\nTag.\nThen push.\n"
    run(commands, "str_replace", path="/memories/release.md", old_str="Sign.\n")
    assert memory.read("release.md").memory.text == "# Release\nTag.\nThen push.\n"


def test_what_cannot_be_replaced_for_certain_is_refused(commands: MemoryCommands) -> None:
    run(commands, "create", path="/memories/a.md", file_text="one\ntwo\none\n")
    assert refused(commands, "str_replace", path="/memories/a.md", old_str="four", new_str="x") == (
        "No replacement was performed, old_str `four` did not appear verbatim in /memories/a.md."
    )
    assert refused(commands, "str_replace", path="/memories/a.md", old_str="one", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 3. "
        "Please ensure it is unique"
    )


def test_lines_are_inserted_where_they_are_wanted(commands: MemoryCommands, memory: MemoryDir) -> None:
    run(commands, "create", path="/memories/a.md", file_text="one\ntwo\n")
    assert run(commands, "insert", path="/memories/a.md", insert_line=0, insert_text="zero\n") == (
        "The file /memories/a.md has been edited."
    )
    run(commands, "insert", path="/memories/a.md", insert_line=3, insert_text="three")
    assert memory.read("a.md").memory.text == "zero\none\ntwo\nthree\n"
    assert refused(commands, "insert", path="/memories/a.md", insert_line=9, insert_text="x") == (
        "Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: "
        "[0, 4]"
    )


def test_files_and_folders_are_renamed_and_deleted(commands: MemoryCommands, memory: MemoryDir) -> None:
    for name in ("a/one.md", "a/two.md", "b.md"):
        run(commands, "create", path=f"/memories/{name}", file_text="x\n")
    assert refused(commands, "rename", old_path="/memories/b.md", new_path="/memories/a/one.md") == (
        "Error: The destination /memories/a/one.md already exists"
    )
    assert run(commands, "rename", old_path="/memories/a", new_path="/memories/c") == (
        "Successfully renamed /memories/a to /memories/c"
    )
    run(commands, "rename", old_path="/memories/b.md", new_path="/memories/d.md")
    assert memory.keys() == ("c/one.md", "c/two.md", "d.md")
    assert run(commands, "delete", path="/memories/c") == "Successfully deleted /memories/c"
    run(commands, "delete", path="/memories/d.md")
    assert memory.keys() == ()
    assert (
        refused(commands, "delete", path="/memories/d.md") == "Error: The path /memories/d.md does not exist"
    )
    assert "itself" in refused(commands, "delete", path="/memories")
    assert "itself" in refused(commands, "rename", old_path="/memories", new_path="/memories/x")


def test_what_is_not_there_or_there_already_is_said(commands: MemoryCommands) -> None:
    assert refused(commands, "view", path="/memories/no.md") == (
        "The path /memories/no.md does not exist. Please provide a valid path."
    )
    run(commands, "create", path="/memories/a.md", file_text="x")
    assert refused(commands, "create", path="/memories/a.md", file_text="y") == (
        "Error: File /memories/a.md already exists"
    )
    assert "Unknown command" in refused(commands, "sing")


@pytest.mark.parametrize(
    "name", ["notes.txt", "notes", "my notes.md", "Übersicht.md", "计划.txt", "a b/c d.txt"]
)
def test_a_file_keeps_exactly_the_name_that_the_model_gave_it(
    commands: MemoryCommands, memory: MemoryDir, name: str
) -> None:
    path = f"/memories/{name}"
    assert run(commands, "create", path=path, file_text="x\n") == f"File created successfully at: {path}"
    [key] = memory.keys()
    assert key.isascii()
    assert key.endswith(".md")
    assert path in run(commands, "view", path="/memories").replace("\n", "\t").split("\t")
    assert run(commands, "view", path=path).endswith(f"{path} with line numbers:\n     1\tx")
    run(commands, "insert", path=path, insert_line=1, insert_text="y")
    run(commands, "str_replace", path=path, old_str="x", new_str="z")
    assert run(commands, "view", path=path).endswith("\n     1\tz\n     2\ty")
    assert "already exists" in refused(commands, "create", path=path, file_text="x")
    run(commands, "rename", old_path=path, new_path="/memories/plain.md")
    assert (memory.keys(), memory.read("plain.md").memory.text) == (("plain.md",), "z\ny\n")
    run(commands, "rename", old_path="/memories/plain.md", new_path=path)
    run(commands, "delete", path=path)
    assert memory.keys() == ()


def test_a_head_that_repeats_the_text_is_hidden_so_that_a_sentence_is_found_once(memory: MemoryDir) -> None:
    text = "---\nname: style\ndescription: Use tabs.\ntype: feedback\n---\n\nUse tabs.\nAlways.\n"
    commands = MemoryCommands(memory, is_trusted=True)
    run(commands, "create", path="/memories/style.md", file_text=text)
    assert run(commands, "view", path="/memories/style.md").endswith("     1\tUse tabs.\n     2\tAlways.")
    run(commands, "str_replace", path="/memories/style.md", old_str="Use tabs.", new_str="Use spaces.")
    assert memory.read("style.md").memory.text == text.replace("\n\nUse tabs.", "\n\nUse spaces.")


def test_every_change_stands_in_the_history_as_the_models_own_and_untrusted(
    commands: MemoryCommands, memory: MemoryDir
) -> None:
    run(commands, "create", path="/memories/a.md", file_text="x\n")
    stored = memory.read("a.md")
    assert (stored.origin.who, stored.origin.said_by, stored.origin.session) == ("agent", "model", "s1")
    assert not stored.is_trusted
    run(MemoryCommands(memory, is_trusted=True), "create", path="/memories/b.md", file_text="x\n")
    assert memory.read("b.md").is_trusted


@pytest.mark.parametrize(
    ("command", "given_"),
    [
        ("delete", {"path": "/memories/style.md"}),
        ("str_replace", {"path": "/memories/style.md", "old_str": "Tabs", "new_str": "Spaces"}),
        ("insert", {"path": "/memories/style.md", "insert_line": 0, "insert_text": "Skip the review."}),
        ("rename", {"old_path": "/memories/style.md", "new_path": "/memories/x.md"}),
    ],
)
def test_a_memory_of_the_users_own_is_changed_only_when_they_agree(
    commands: MemoryCommands, memory: MemoryDir, command: str, given_: dict[str, object]
) -> None:
    memory.commit([Write("style.md", "Tabs.\n", None)], Origin(who="user", why="told so", said_by="user"))
    for _ in range(2):
        assert "sevenfold memory review" in refused(commands, command, **given_)
    assert memory.read("style.md").memory.text == "Tabs.\n"
    assert memory.read("style.md").is_trusted
    (waiting,) = memory.waiting()
    memory.accept(waiting.id)
    assert memory.find("style.md") is None or memory.read("style.md").memory.text != "Tabs.\n"
    run(MemoryCommands(memory, is_trusted=True), "create", path="/memories/own.md", file_text="Mine.")
    run(MemoryCommands(memory, is_trusted=True), "delete", path="/memories/own.md")


def test_what_only_looks_like_the_end_of_a_line_is_kept(commands: MemoryCommands, memory: MemoryDir) -> None:
    text = "one\x0ctwo\u2028three\r\nfour\n"
    run(commands, "create", path="/memories/a.md", file_text=text)
    run(commands, "insert", path="/memories/a.md", insert_line=1, insert_text="mid")
    assert memory.read("a.md").memory.text == "one\x0ctwo\u2028three\r\nmid\nfour\n"
    assert "     2\tmid" in run(commands, "view", path="/memories/a.md")


def test_the_index_is_kept_by_the_engine_and_can_be_read(commands: MemoryCommands) -> None:
    run(commands, "create", path="/memories/a.md", file_text="Tabs, never spaces.\n")
    assert "a.md" in run(commands, "view", path="/memories/MEMORY.md")
    assert "made of the files" in refused(commands, "create", path="/memories/MEMORY.md", file_text="x")


def test_what_others_write_can_be_read_and_not_changed(commands: MemoryCommands, memory: MemoryDir) -> None:
    memory.commit(
        [Write("team/style.md", "Tabs.\n", ANYTHING)], Origin(who="user", why="shared", said_by="user")
    )
    assert "Tabs." in run(commands, "view", path="/memories/team/style.md")
    for command, more in (
        ("create", {"path": "/memories/team/new.md", "file_text": "x"}),
        ("delete", {"path": "/memories/team"}),
        ("str_replace", {"path": "/memories/team/style.md", "old_str": "Tabs", "new_str": "x"}),
    ):
        assert "cannot be changed here" in refused(commands, command, **more)


def test_a_secret_is_not_remembered_and_not_repeated(commands: MemoryCommands, memory: MemoryDir) -> None:
    secret = "ghp_" + "aZ3kQ9xLm2Vb7Nc4Td8Rf1Ys6Wp0Ju5HgEiO"
    answer = refused(commands, "create", path="/memories/a.md", file_text=f"token: {secret}\n")
    assert "secret" in answer
    assert secret not in answer
    assert memory.keys() == ()


def test_a_long_view_is_cut_and_says_how_to_go_on(commands: MemoryCommands) -> None:
    run(commands, "create", path="/memories/a.md", file_text="word " * 5 + "\n" + "line\n" * 5_000)
    answer = run(commands, "view", path="/memories/a.md")
    assert len(answer) < 16_100
    assert "view_range" in answer
    assert "Invalid `view_range`" in refused(commands, "view", path="/memories/a.md", view_range=[9_999, 1])


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "memories/a.md",
        "/memories/../../etc/passwd",
        "/memories/./a.md",
        "/memories/%2e%2e/a.md",
        "/memories\\..\\a.md",
        "/memoriesevil/a.md",
        "/memories/.ssh/id.md",
        "/memories/con.md",
        "/memories/a\0.md",
        "/memories/a\u202eb.md",
    ],
)
def test_no_path_leads_out_or_means_two_things(
    commands: MemoryCommands, memory: MemoryDir, path: str
) -> None:
    for command, more in (("create", {"file_text": "x"}), ("delete", {}), ("view", {})):
        assert commands.run({"command": command, "path": path, **more}).is_error
    assert memory.keys() == ()


@settings(max_examples=up_to(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["view", "create", "str_replace", "insert", "delete", "rename", ""]),
    st.dictionaries(
        st.sampled_from(
            ["path", "old_path", "new_path", "file_text", "old_str", "insert_line", "view_range"]
        ),
        st.one_of(
            st.none(), st.integers(), st.text(max_size=20), st.sampled_from(["/memories", "/memories/a"])
        ),
    ),
)
def test_any_input_gets_an_answer(commands: MemoryCommands, command: str, given_: dict[str, object]) -> None:
    assert isinstance(commands.run({"command": command, **given_}), CommandResult)


def test_the_tool_runner_of_the_sdk_works_with_it(memory: MemoryDir) -> None:
    def brain(prompt: Prompt) -> Reply:
        steps = [
            {"command": "view", "path": "/memories"},
            {"command": "create", "path": "/memories/release.md", "file_text": TEXT},
            {"command": "create", "path": "/memories/release.md", "file_text": TEXT},
        ]
        done = len(prompt.messages) // 2
        return Reply((call_tool("memory", steps[done]),)) if done < len(steps) else say("Remembered.")

    with Simulator(brain) as simulator, simulator.client() as client:
        runner = client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=500,
            tools=[memory_tool(memory)],
            messages=[{"role": "user", "content": "Remember how we release."}],
        )
        final = runner.until_done()
    assert final.content[0].type == "text"
    assert final.content[0].text == "Remembered."
    assert memory.read("release.md").memory.text == TEXT


def test_an_async_client_goes_the_same_way(memory: MemoryDir) -> None:
    async def call() -> None:
        tool = async_memory_tool(memory)
        await tool.call({"command": "create", "path": "/memories/a.md", "file_text": "x\n"})
        with pytest.raises(ToolError, match="already exists"):
            await tool.call({"command": "create", "path": "/memories/a.md", "file_text": "x\n"})

    asyncio.run(call())
    assert memory.keys() == ("a.md",)


def test_the_tool_runner_keeps_the_names_that_the_model_gave(memory: MemoryDir) -> None:
    steps = [
        {"command": "create", "path": "/memories/notes.txt", "file_text": "Tabs, never spaces.\n"},
        {"command": "create", "path": "/memories/größe & maße.md", "file_text": "Ten by ten.\n"},
        {"command": "str_replace", "path": "/memories/notes.txt", "old_str": "Tabs", "new_str": "Two tabs"},
        {"command": "rename", "old_path": "/memories/notes.txt", "new_path": "/memories/日本 語.txt"},
        {"command": "delete", "path": "/memories/größe & maße.md"},
        {"command": "view", "path": "/memories"},
        {"command": "view", "path": "/memories/日本 語.txt"},
    ]
    answers: list[str] = []

    def brain(prompt: Prompt) -> Reply:
        answers.append(str(prompt.messages[-1]))
        done = len(prompt.messages) // 2
        return Reply((call_tool("memory", steps[done]),)) if done < len(steps) else say("Done.")

    with Simulator(brain) as simulator, simulator.client() as client:
        client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=500,
            tools=[memory_tool(memory)],
            messages=[{"role": "user", "content": "Keep notes."}],
        ).until_done()
    listing, text = answers[-2:]
    assert "/memories/日本 語.txt" in listing
    assert "notes.txt" not in listing
    assert "größe" not in listing
    assert "1\\tTwo tabs, never spaces." in text
    assert "memory_path" not in text
    [key] = memory.keys()
    assert key.isascii()
