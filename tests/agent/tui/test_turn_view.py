"""A turn is shown once, in order, and what is still moving is shown below it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.agent.loop.turn import (
    DeltaReceived,
    LayerActed,
    NoticePosted,
    RoundEnded,
    ToolEnded,
    ToolPrinted,
    ToolStarted,
    TurnEvent,
)
from sevenfold.agent.tool import ToolOutput
from sevenfold.agent.tui.render.markdown_stream import ProseBlock
from sevenfold.agent.tui.render.status_line import FRAME_TIME, BusyLine, StatusLine
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.agent.tui.turn_view import MAX_LIVE_LINES, TurnView
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import (
    AgentEnded,
    AgentStarted,
    NotesUpdated,
    ResultSpilled,
    RetryScheduled,
    ToolDenied,
)
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Image, Message, Text, ToolUse, ToolUseId
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import NO_USAGE, Usage
from sevenfold.providers.provider import TextDelta, ThinkingDelta
from tests.examples import up_to


@dataclass(slots=True)
class Paper:
    """A surface that keeps what it was given."""

    printed: list[str] = field(default_factory=list[str])
    columns: int = 60

    def renderer(self) -> TextRenderer:
        return TextRenderer(self.columns)

    def put(self, text: str) -> None:
        self.printed.append(text)

    def refresh(self) -> None:
        """Nothing is drawn on paper."""

    @property
    def text(self) -> str:
        return "\n".join(self.printed)


@pytest.fixture
def paper() -> Paper:
    return Paper()


@pytest.fixture
def view(paper: Paper) -> TurnView:
    return TurnView(
        paper, StatusLine(model="claude-opus-5-5", mode="ask"), root="/srv/app", unfolding="ctrl-o"
    )


def use(name: str = "shell", number: int = 1) -> ToolUse:
    return ToolUse(ToolUseId(f"toolu_{number}"), name, EMPTY_OBJECT)


def ended(text: str, name: str = "shell", number: int = 1, *, diff: str = "", bad: bool = False) -> ToolEnded:
    return ToolEnded(use=use(name, number), output=ToolOutput(text, bad, diff), took=timedelta(seconds=2))


def round_ended() -> RoundEnded:
    return RoundEnded(
        reply=ModelResponse(message=Message("assistant", "x"), usage=NO_USAGE, usage_wire=EMPTY_OBJECT),
        context_tokens=5_000,
        limit_tokens=10_000,
        spent_usd=0.25,
    )


def watch(view: TurnView, *seen: TurnEvent) -> None:
    for item in seen:
        view.watch(item)


@given(st.lists(st.sampled_from(["cat ", "\n", "\n\n", "```\n", "- x\n"]), max_size=30))
def test_an_answer_is_printed_once_however_it_is_streamed(pieces: list[str]) -> None:
    slow, fast = Paper(), Paper()
    watch(TurnView(slow, StatusLine()), *(DeltaReceived(TextDelta(piece)) for piece in pieces), round_ended())
    watch(TurnView(fast, StatusLine()), DeltaReceived(TextDelta("".join(pieces))), round_ended())
    assert slow.text == fast.text


def test_what_is_not_complete_is_drawn_and_not_printed(view: TurnView, paper: Paper) -> None:
    watch(view, DeltaReceived(TextDelta("One.\n\nTwo")))
    assert paper.text.strip() == "One."
    assert view.live(TextRenderer(60)).strip() == "Two"
    watch(view, round_ended())
    assert paper.text.split() == ["One.", "Two"]
    assert view.live(TextRenderer(60)) == ""


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
@pytest.mark.parametrize("size", [6, 7, 21])
def test_nothing_is_missing_between_what_is_printed_and_what_is_drawn(columns: int, size: int) -> None:
    words = [f"{number:0{size}}" for number in range(80 if columns < 100 else 300)]
    paper = Paper()
    view, renderer = TurnView(paper, StatusLine()), TextRenderer(columns)
    paper.columns = columns
    for start in range(0, len(words), 2):
        view.watch(DeltaReceived(TextDelta(" ".join(words[start : start + 2]) + " ")))
        shown = f"{paper.text}\n{view.live(renderer)}".split()
        assert shown == words[: start + 2]


@settings(max_examples=up_to(12))
@given(
    st.lists(st.integers(1, 12), min_size=30, max_size=40), st.integers(1, 9), st.sampled_from([40, 80, 200])
)
def test_no_word_is_seen_on_one_line_and_then_on_another(
    lengths: list[int], piece: int, columns: int
) -> None:
    text = " ".join("x" * length for length in lengths)
    view, renderer = TurnView(Paper(), StatusLine()), TextRenderer(columns)
    final = renderer.markdown(ProseBlock(text)).split("\n")
    for start in range(0, len(text), piece):
        view.watch(DeltaReceived(TextDelta(text[start : start + piece])))
        *above, last = view.live(renderer).strip("\n").split("\n")
        assert above == final[: len(above)]
        assert f"{final[len(above)]} ".startswith(f"{last} ") or start < lengths[0]


def test_thinking_is_drawn_until_the_answer_begins(view: TurnView, paper: Paper) -> None:
    watch(view, DeltaReceived(ThinkingDelta("Where may the cat be?")))
    assert "Where may the cat be?" in view.live(TextRenderer(60))
    watch(view, DeltaReceived(TextDelta("On the mat.")))
    assert "Where" not in view.live(TextRenderer(60))
    assert paper.text == ""


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_of_long_thinking_the_last_whole_words_are_drawn_on_one_line(view: TurnView, columns: int) -> None:
    thought = " ".join(f"thought{number}" for number in range(60))
    watch(view, DeltaReceived(ThinkingDelta(thought)))
    label, *words = view.live(TextRenderer(columns)).split()
    assert label == "thinking"
    assert words == thought.split()[-len(words) :]
    assert "\n" not in view.live(TextRenderer(columns))


def test_a_running_tool_shows_the_last_lines_it_printed(view: TurnView) -> None:
    watch(
        view, ToolStarted(use(), "make test"), ToolPrinted(use(), "1\n2\n3\n4\nhal"), ToolPrinted(use(), "f")
    )
    assert view.live(TextRenderer(60)).split("\n") == ["○ shell make test", "  3", "  4", "  half"]


def test_a_running_tool_says_for_how_long(paper: Paper) -> None:
    clock = ManualClock()
    view = TurnView(paper, StatusLine(), clock=clock)
    view.watch(ToolStarted(use(), "make test"))
    assert view.live(TextRenderer(60)) == "○ shell make test"
    clock.pass_time(timedelta(seconds=4))
    assert view.live(TextRenderer(60)) == "○ shell make test  4 s"


def test_long_output_is_folded_and_can_be_unfolded(view: TurnView, paper: Paper) -> None:
    text = "\n".join(f"line {number}" for number in range(20))
    watch(view, ToolStarted(use(), "ls"), ended(text))
    assert "● shell ls  (2.0 s)" in paper.text
    assert "line 1\n  … 15 more  (ctrl-o)\n  line 17\n  line 18\n  line 19" in paper.text
    assert "line 2\n" not in paper.text
    assert view.unfold()
    assert "line 2\n" in paper.text
    assert not view.unfold(2)


def test_a_file_that_was_read_is_not_shown_but_counted(view: TurnView, paper: Paper) -> None:
    watch(view, ToolStarted(use("read"), "read a.py"), ended("x = 1\ny = 2", "read"))
    assert "● read a.py  (2.0 s)  2 lines" in paper.text
    assert "x = 1" not in paper.text
    assert view.unfold()
    assert "x = 1" in paper.text


def test_an_edit_shows_its_diff_and_not_its_words(view: TurnView, paper: Paper) -> None:
    watch(
        view, ToolStarted(use("edit"), "edit a.py"), ended("done", "edit", diff="@@ -1 +1 @@\n-old\n+new\n")
    )
    assert "-old" in paper.text
    assert "done" not in paper.text


def test_tools_side_by_side_keep_their_titles(view: TurnView, paper: Paper) -> None:
    watch(view, ToolStarted(use(number=1), "first"), ToolStarted(use(number=2), "second"))
    watch(view, ended("b", number=2), ended("a", number=1))
    titles = [line for line in paper.text.split("\n") if line.startswith("●")]
    assert titles == ["● shell second  (2.0 s)", "● shell first  (2.0 s)"]


def test_an_image_in_a_result_is_named(view: TurnView, paper: Paper) -> None:
    output = ToolOutput((Text("a"), Image(EMPTY_OBJECT)))
    watch(view, ToolEnded(use=use(), output=output, took=timedelta()))
    assert "[image]" in paper.text


def test_what_a_layer_did_is_a_line_and_the_news(view: TurnView, paper: Paper) -> None:
    watch(view, LayerActed(ResultSpilled(ToolUseId("t"), "/x", 90_000)))
    assert "layer 1: a result of 90,000 bytes" in paper.text
    assert view.status.news.startswith("layer 1")


def test_a_round_updates_the_status(view: TurnView) -> None:
    watch(view, round_ended())
    assert (view.status.context_tokens, view.status.limit_tokens) == (5_000, 10_000)


def test_a_turn_that_ends_in_the_middle_leaves_nothing_moving(view: TurnView, paper: Paper) -> None:
    view.begin("do it\nnow")
    watch(view, DeltaReceived(TextDelta("Half a")), ToolStarted(use(), "x"), NoticePosted("mail came"))
    view.end()
    assert view.live(TextRenderer(60)) == ""
    assert "Half a" in paper.text
    assert paper.text.startswith("\n› do it\n  now")
    assert not view.status.is_working


@given(st.integers(0, 40))
def test_what_moves_fits_a_few_lines(count: int) -> None:
    view = TurnView(Paper(), StatusLine())
    watch(view, *(ToolStarted(use(number=number), "x") for number in range(count)))
    lines = view.live(TextRenderer(60)).split("\n")
    assert len(lines) <= MAX_LIVE_LINES


def test_what_a_layer_does_in_mid_sentence_does_not_split_the_sentence(view: TurnView, paper: Paper) -> None:
    watch(
        view,
        DeltaReceived(TextDelta("The cat ")),
        NoticePosted("mail came"),
        DeltaReceived(TextDelta("sat.")),
        round_ended(),
    )
    assert "The cat sat." in paper.text
    assert "mail came" in paper.text


def test_paths_are_told_from_the_project_on(view: TurnView, paper: Paper) -> None:
    watch(view, ToolStarted(use("read"), "read /srv/app/src/a.py"), ended("x", "read"))
    assert "● read src/a.py" in paper.text


def test_tools_that_show_nothing_stand_close_together(view: TurnView, paper: Paper) -> None:
    for number in (1, 2):
        watch(view, ToolStarted(use("read", number), f"read {number}.py"), ended("x", "read", number))
    assert paper.text.split("\n") == ["", "● read 1.py  (2.0 s)  1 line", "● read 2.py  (2.0 s)  1 line"]


def test_a_title_names_its_tool_once(view: TurnView, paper: Paper) -> None:
    for said in ("fork agent ann: count", "count"):
        watch(
            view,
            ToolStarted(use("agent"), said),
            ToolEnded(use=use("agent"), output=ToolOutput("7"), took=timedelta()),
        )
    assert "● fork agent ann: count" in paper.text
    assert "● agent count" in paper.text


def test_a_call_that_failed_says_so_in_words_and_shows_why(view: TurnView, paper: Paper) -> None:
    view.watch(ToolStarted(use("read"), "read nope.py"))
    view.watch(ended("nope.py is not there", "read", bad=True))
    assert paper.text.split("\n")[-2:] == ["✗ read nope.py  failed  (2.0 s)", "  nope.py is not there"]


def test_a_denied_call_keeps_its_command_and_its_reason_is_shown_once(view: TurnView, paper: Paper) -> None:
    reason = "the user did not allow it: never push"
    view.watch(LayerActed(ToolDenied("main", "shell", ToolUseId("toolu_1"), reason)))
    output = ToolOutput(f"not allowed: {reason}", is_error=True)
    view.watch(ToolEnded(use=use(), output=output, took=timedelta(), said="git push", is_denied=True))
    assert "✗ shell git push  denied" in paper.text
    assert paper.text.count("never push") == 1


def test_a_denied_call_of_a_sub_agent_is_told(view: TurnView, paper: Paper) -> None:
    view.watch(LayerActed(ToolDenied("scout", "shell", ToolUseId("toolu_1"), "no")))
    assert "scout may not use shell: no" in paper.text


def test_the_busy_line_says_what_a_turn_does_and_for_how_long(view: TurnView) -> None:
    view.begin("go")
    phases = [view.phase]
    view.watch(DeltaReceived(ThinkingDelta("hm")))
    phases.append(view.phase)
    view.watch(ToolStarted(use("shell"), "ls"))
    phases.append(view.phase)
    assert phases == ["waiting for the model", "thinking", "running shell"]
    elapsed = timedelta(seconds=72.5)
    line = BusyLine(phase=view.phase, elapsed=elapsed, tokens=1_234).render(TextRenderer(80))
    assert line[2:] == "working 72 s: running shell  ↓ 1,234 tokens  Esc interrupts"
    ascii_only = BusyLine(phase="thinking", elapsed=elapsed, tokens=9).render(TextRenderer(80, signs="ascii"))
    assert ascii_only.isascii()


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_the_busy_line_moves_and_says_how_to_interrupt(columns: int) -> None:
    renderer, phase = TextRenderer(columns), "retry 3 of 10 in 8 s: 529: Overloaded"
    frames = {
        BusyLine(phase=phase, elapsed=number * FRAME_TIME, tokens=1_000_000).render(renderer)
        for number in range(4)
    }
    assert len({frame[0] for frame in frames}) == 4
    rows = [row for frame in frames for row in frame.split("\n")]
    assert all(len(row) < columns for row in rows)
    assert len(rows) == 4 * {40: 3, 60: 2}.get(columns, 1), "it has rows where one has no room for it"
    assert all("retry 3 of 10" in frame and "Esc interrupts" in frame for frame in frames)
    waiting = BusyLine(phase="writing", elapsed=FRAME_TIME, tokens=1_000).render(renderer)
    assert "Esc interrupts" in waiting, "how to interrupt outlives the figures"


def test_tokens_are_counted_while_they_come_and_as_billed_afterwards(view: TurnView) -> None:
    view.begin("go")
    view.watch(DeltaReceived(ThinkingDelta("x" * 40)))
    view.watch(DeltaReceived(TextDelta("x" * 40)))
    assert view.turn_tokens == 20
    ended = round_ended()
    view.watch(replace(ended, reply=replace(ended.reply, usage=Usage(output=7))))
    assert view.turn_tokens == 7
    view.begin("more")
    assert view.turn_tokens == 0


def test_what_a_layer_did_in_the_turn_before_is_no_news(view: TurnView) -> None:
    view.watch(LayerActed(NotesUpdated(session="s", writer="model", tokens=9, covered=3)))
    assert view.status.news
    view.begin("go on")
    assert not view.status.news


def test_a_long_prompt_is_echoed_in_a_few_lines(view: TurnView, paper: Paper) -> None:
    view.begin("\n".join(f"line {number}" for number in range(200)))
    assert len(paper.text.strip().split("\n")) == 6
    assert "… 195 more lines" in paper.text


def test_retries_count_down_in_the_status_line_and_take_one_line_above(paper: Paper) -> None:
    clock = ManualClock()
    view = TurnView(paper, StatusLine(), clock=clock)
    for retry in (1, 2, 3):
        view.watch(
            LayerActed(RetryScheduled(model="m", retry=retry, of=10, seconds=8.0, reason="529: Overloaded"))
        )
    assert view.phase == "retry 3 of 10 in 8 s: 529: Overloaded"
    clock.pass_time(timedelta(seconds=3))
    assert view.phase.startswith("retry 3 of 10 in 5 s:")
    assert len(paper.printed) == 1, "an answer with a code has a server: nothing is said of the network"
    view.watch(DeltaReceived(TextDelta("hello")))
    assert "retry" not in view.phase


def test_a_retry_is_no_news_once_it_is_over_and_a_failure_knows_how_many_there_were(view: TurnView) -> None:
    for retry in (1, 4):
        event = RetryScheduled(model="m", retry=retry, of=10, seconds=2.0, reason="gone")
        watch(view, LayerActed(event))
    assert not view.status.news, "the line of the turn counts the attempts, as long as it waits"
    assert view.retries == 4
    view.watch(DeltaReceived(TextDelta("hello")))
    assert view.retries == 0


def test_an_answer_that_does_not_come_on_is_seen(paper: Paper) -> None:
    clock = ManualClock()
    view = TurnView(paper, StatusLine(), clock=clock)
    view.begin("go")
    clock.pass_time(timedelta(seconds=14))
    assert view.phase == "waiting for the model"
    clock.pass_time(timedelta(seconds=6))
    assert view.phase == "no answer for 20 s", "nobody knows when a model on this machine gives up"
    view.stall = timedelta(minutes=5)
    assert view.phase == "no answer for 20 s, waits at most 600 s"
    view.watch(DeltaReceived(TextDelta("hello")))
    clock.pass_time(timedelta(seconds=4))
    assert view.phase == "writing"
    clock.pass_time(timedelta(seconds=3))
    assert view.phase == "writing, nothing new for 7 s, waits at most 300 s"
    view.watch(DeltaReceived(TextDelta(" there")))
    assert view.phase == "writing"


def test_a_request_that_is_sent_again_is_waited_for_too(paper: Paper) -> None:
    clock = ManualClock()
    view = TurnView(paper, StatusLine(), clock=clock)
    view.begin("go")
    view.watch(LayerActed(RetryScheduled(model="m", retry=1, of=10, seconds=8, reason="529: It is full")))
    assert view.phase == "retry 1 of 10 in 8 s: 529: It is full"
    clock.pass_time(timedelta(seconds=9))
    assert view.phase == "retry 1 of 10: waiting for the model"
    clock.pass_time(timedelta(seconds=20))
    assert view.phase == "retry 1 of 10: no answer for 21 s"


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_a_long_command_takes_few_rows_and_can_be_unfolded(columns: int) -> None:
    paper, words = Paper(columns=columns), " ".join(f"word{number}" for number in range(200))
    view = TurnView(paper, StatusLine(), unfolding="ctrl-o")
    call = use()
    view.watch(ToolStarted(call, f"python -c '{words}'"))
    (line,) = view.live(paper.renderer()).split("\n")
    assert line.startswith("○ shell python -c 'word0"), "its beginning, in one row"
    view.watch(ToolEnded(use=call, output=ToolOutput("one"), took=timedelta(seconds=2), said=""))
    *head, last = paper.text.strip().split("\n")
    assert len(head) <= 4
    assert " ".join(head[-1].split()).endswith("(2.0 s)")
    assert "… (ctrl-o)" in " ".join(paper.text.split())
    assert last == "  one"
    view.unfold()
    assert words in " ".join(paper.printed[-1].split())


def test_a_call_that_was_interrupted_leaves_a_line(view: TurnView, paper: Paper) -> None:
    use = ToolUse(ToolUseId("t"), "shell", EMPTY_OBJECT)
    view.watch(ToolStarted(use, "make build"))
    view.watch(ToolPrinted(use, "compiling\nlinking"))
    view.end()
    assert paper.text.strip().split("\n") == ["✗ shell make build  interrupted", "  compiling", "  linking"]
    assert not view.live(TextRenderer(80))


def end_agent(outcome: str) -> LayerActed:
    return LayerActed(
        AgentEnded(
            name="ada",
            kind="fresh",
            outcome=outcome,
            rounds=1,
            read_tokens=9,
            written_tokens=0,
            fresh_tokens=0,
            output_tokens=1,
        )
    )


def test_what_a_call_says_already_is_not_said_by_its_layer_too() -> None:
    paper = Paper()
    view = TurnView(paper, StatusLine())
    watch(view, LayerActed(AgentStarted("ada", "fresh", is_background=True)), end_agent("answered"))
    assert paper.printed == []
    assert len(view.acts) == 2, "/layers has them"
    watch(view, end_agent("failed"))
    assert "the agent ada failed" in paper.text
