"""The session that ships as a sample, made up from beginning to end.

Somebody fixes a tide forecast that is an hour off. On the way a file is read twice, lunch outlives the cache,
a sub-agent searches, and the conversation is compacted. Nothing in it was ever said to a model: usage follows
from what the messages weigh and from the cache's rules. `python -m tests.replay.sample_session` writes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from sevenfold.core.messages import read_block
from sevenfold.core.tokens import NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.estimation import weigh_by_shape
from tests.replay import sample_code, sample_texts

TARGET = Path(__file__).parents[2] / "src" / "sevenfold" / "replay" / "sample" / "session.jsonl"

MODEL = "claude-opus-5-5"
SCOUT = "claude-haiku-5-5"
SESSION = "5a3b1e00-71de-4f0c-a5c3-7f01d5a3b1e0"
FRAME_TOKENS = 17_400
"""System prompt and tool schemas: sent with every call, and in no log."""
LIFE = timedelta(minutes=5)

Wire = dict[str, object]


def fake_id(prefix: str, *parts: object) -> str:
    return prefix + sha256("/".join(map(str, parts)).encode()).hexdigest()[:24]


def tokens(block: Wire) -> int:
    return round(weigh_by_shape(read_block(block)) * NEWER_TOKENIZER_SCALE)


@dataclass(kw_only=True)
class SampleConversation:
    """One conversation, and what the provider's cache holds of it."""

    model: str
    frame: int
    agent: str | None = None
    context: int = 0
    cached: int = 0
    last_call: datetime | None = None


@dataclass(kw_only=True)
class Story:
    """Writes lines while a clock runs."""

    now: datetime = field(default_factory=lambda: datetime(2026, 11, 3, 10, 2, 11, tzinfo=UTC))
    lines: list[str] = field(default_factory=list[str])
    parent: str | None = None
    main: SampleConversation = field(
        default_factory=lambda: SampleConversation(model=MODEL, frame=FRAME_TOKENS)
    )
    calls: int = 0

    def wait(self, **span: float) -> None:
        self.now += timedelta(**span)

    def write(self, kind: str, conversation: SampleConversation, body: Wire) -> str:
        uuid = fake_id("", "line", len(self.lines))
        line: Wire = {
            "parentUuid": self.parent,
            "isSidechain": conversation.agent is not None,
            "userType": "external",
            "cwd": sample_code.FOLDER,
            "sessionId": SESSION,
            "version": "2.1.318",
            "gitBranch": "main",
            "type": kind,
            **({"agentId": conversation.agent} if conversation.agent else {}),
            **body,
            "uuid": uuid,
            "timestamp": self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        self.lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
        self.parent = uuid
        return uuid

    def chatter(self, body: Wire) -> None:
        self.lines.append(json.dumps(body, separators=(",", ":")))

    def say(self, said: str, *, conversation: SampleConversation | None = None, **flags: object) -> None:
        conversation = conversation or self.main
        conversation.context += tokens({"type": "text", "text": said})
        self.write("user", conversation, {"message": {"role": "user", "content": said}, **flags})

    def answer(
        self, *blocks: Wire, conversation: SampleConversation | None = None, is_final: bool = True
    ) -> list[str]:
        """A model call: one line a block, its usage on each, the true output count on the last or "
        "nowhere."""
        conversation = conversation or self.main
        self.calls += 1
        usage = self.bill(conversation)
        message = {"id": fake_id("msg_01", "call", self.calls), "type": "message", "role": "assistant"}
        uses: list[str] = []
        weight = sum(map(tokens, blocks))
        for place, block in enumerate(blocks):
            self.wait(seconds=2.2 + weight / 90 / len(blocks))
            if block["type"] == "tool_use":
                block["id"] = fake_id("toolu_01", self.calls, place)
                uses.append(str(block["id"]))
            is_last = place == len(blocks) - 1
            final = {"output_tokens": weight} if is_last and is_final else {}
            stop = {"stop_reason": "tool_use" if uses else "end_turn"} if final else {"stop_reason": None}
            body = {
                "model": conversation.model,
                **message,
                "content": [block],
                **stop,
                "usage": usage | final,
            }
            self.write(
                "assistant", conversation, {"message": body, "requestId": fake_id("req_01", self.calls)}
            )
        conversation.context += weight
        return uses

    def bill(self, conversation: SampleConversation) -> Wire:
        prompt = conversation.frame + conversation.context
        is_warm = conversation.last_call is not None and self.now - conversation.last_call <= LIFE
        read = min(conversation.cached, prompt) if is_warm else 0
        fresh = 4 + self.calls % 7
        written = prompt - read - fresh
        conversation.cached, conversation.last_call = prompt - fresh, self.now
        return {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 1 + self.calls % 5,
            "service_tier": "standard",
        }

    def result(
        self, use: str, content: str, *, conversation: SampleConversation | None = None, took_s: float = 0.4
    ) -> None:
        conversation = conversation or self.main
        self.wait(seconds=took_s)
        block: Wire = {"tool_use_id": use, "type": "tool_result", "content": content}
        conversation.context += tokens(block)
        self.write(
            "user", conversation, {"message": {"role": "user", "content": [block]}, "toolUseResult": {}}
        )

    def compact(self, summary: str) -> None:
        conversation = self.main
        before = conversation.frame + conversation.context
        self.wait(seconds=48)
        conversation.context, conversation.cached = 0, conversation.frame - 300
        self.parent = None
        about = {"trigger": "manual", "preTokens": before}
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted", "level": "info"}
        self.write("system", conversation, {**boundary, "compactMetadata": about})
        self.say(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def think(thought: str) -> Wire:
    return {"type": "thinking", "thinking": thought, "signature": "c2lnbmVk" * (12 + len(thought) // 6)}


def text(said: str) -> Wire:
    return {"type": "text", "text": said}


def use(tool: str, **arguments: object) -> Wire:
    return {"type": "tool_use", "id": "", "name": tool, "input": arguments}


def read(path: str) -> Wire:
    return use("Read", file_path=f"{sample_code.FOLDER}/{path}")


def tell() -> Story:
    story = Story()
    story.chatter({"type": "file-history-snapshot", "messageId": fake_id("", 0), "snapshot": {}})
    _morning(story)
    _lunch(story)
    _afternoon(story)
    return story


def _morning(story: Story) -> None:
    story.say(
        "Since the clocks went back the tide forecast is an hour off for stations in Europe. Find out"
        " why and fix it."
    )
    (found,) = story.answer(
        think(
            "The forecast is off by exactly one hour after a change of clocks, so local times are "
            "being mixed with UTC somewhere. Look at the layout first."
        ),
        text("I'll look at how the forecast handles time zones."),
        use("Glob", pattern="**/*.py"),
    )
    story.result(found, sample_texts.TREE)
    forecast, stations = story.answer(
        read("tidewatch/forecast.py"), read("tidewatch/stations.py"), is_final=False
    )
    story.result(forecast, sample_code.FORECAST)
    story.result(stations, sample_code.STATIONS)
    (grepped,) = story.answer(
        think(
            "`predict` attaches the station's zone with replace() to a time that was already shifted."
            " Check who else does arithmetic on local times."
        ),
        use("Grep", pattern="tzinfo|astimezone|utcoffset", path="tidewatch", output_mode="content"),
    )
    story.result(grepped, sample_texts.GREP)
    (tested,) = story.answer(
        use("Bash", command="python -m pytest -q tests", description="Run the tests"), is_final=False
    )
    story.result(tested, sample_texts.TESTS_FAIL, took_s=9.3)
    (again,) = story.answer(
        think(
            "Two failures, both around the end of October. I want to see predict once more before I "
            "change it."
        ),
        read("tidewatch/forecast.py"),
    )
    story.result(again, sample_code.FORECAST)
    (edited,) = story.answer(
        text(
            "The phase is computed from a local time that `replace(tzinfo=…)` has labelled without "
            "converting. I'll keep everything in UTC and convert once, for display."
        ),
        use(
            "Edit",
            file_path=f"{sample_code.FOLDER}/tidewatch/forecast.py",
            old_string=sample_texts.OLD,
            new_string=sample_texts.NEW,
        ),
    )
    story.result(
        edited,
        "The file has been updated. Here's the result of running `cat -n` on a snippet:\n" + sample_texts.NEW,
    )
    (tested,) = story.answer(use("Bash", command="python -m pytest -q tests", description="Run the tests"))
    story.result(tested, sample_texts.TESTS_PASS, took_s=8.8)
    story.answer(text(sample_texts.FIXED), is_final=False)


def _lunch(story: Story) -> None:
    story.wait(minutes=47)
    story.say(
        "Thanks. Please add a test for the change in spring as well, and see whether the harbour feed"
        " has the same problem."
    )
    read_tests, task = story.answer(
        think(
            "Spring means the hour that does not exist. The feed is a separate module; a search agent"
            " can look at it while I write the test."
        ),
        read("tests/test_forecast.py"),
        use(
            "Task",
            description="Look for local-time arithmetic",
            prompt=sample_texts.BRIEF,
            subagent_type="Explore",
        ),
        is_final=False,
    )
    story.result(read_tests, sample_code.TESTS)
    _scout(story)
    story.result(task, sample_texts.SCOUTED, took_s=1.0)
    wrote, feed = story.answer(
        use(
            "Edit",
            file_path=f"{sample_code.FOLDER}/tests/test_forecast.py",
            old_string=sample_texts.TEST_OLD,
            new_string=sample_texts.TEST_NEW,
        ),
        read("tidewatch/feed.py"),
    )
    story.result(
        wrote,
        "The file has been updated. Here's the result of running `cat -n` on a snippet:\n"
        + sample_texts.TEST_NEW,
    )
    story.result(feed, sample_code.FEED)
    (logs,) = story.answer(
        text(
            "The feed does the same when it merges observations. Before changing it I'll check what "
            "the last import wrote."
        ),
        use("Bash", command="tail -n 120 var/import.log", description="Show the last import"),
    )
    story.result(logs, sample_texts.LOG)
    (edited,) = story.answer(
        use(
            "Edit",
            file_path=f"{sample_code.FOLDER}/tidewatch/feed.py",
            old_string=sample_texts.FEED_OLD,
            new_string=sample_texts.FEED_NEW,
        ),
        is_final=False,
    )
    story.result(
        edited,
        "The file has been updated. Here's the result of running `cat -n` on a snippet:\n"
        + sample_texts.FEED_NEW,
    )
    (tested,) = story.answer(use("Bash", command="python -m pytest -q tests", description="Run the tests"))
    story.result(tested, sample_texts.TESTS_PASS, took_s=9.1)
    story.answer(text("Both are fixed, and the new test covers the hour that does not exist in spring."))
    story.chatter({"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION})


def _scout(story: Story) -> None:
    scout, parent = SampleConversation(model=SCOUT, frame=6_200, agent="a7f01d5"), story.parent
    story.parent = None
    story.say(sample_texts.BRIEF, conversation=scout)
    (grepped,) = story.answer(
        use("Grep", pattern="datetime", path="tidewatch", output_mode="content"), conversation=scout
    )
    story.result(grepped, sample_texts.GREP, conversation=scout)
    (seen,) = story.answer(read("tidewatch/feed.py"), conversation=scout, is_final=False)
    story.result(seen, sample_code.FEED, conversation=scout)
    story.answer(text(sample_texts.SCOUTED), conversation=scout)
    story.parent = parent


def _afternoon(story: Story) -> None:
    story.wait(minutes=2)
    story.compact(sample_texts.SUMMARY)
    story.wait(seconds=40)
    story.say("Now write the change log entry, and tell me what else depends on the old behaviour.")
    changes, grepped = story.answer(
        think("The change log first, then callers of predict and merge."),
        read("CHANGES.md"),
        use("Grep", pattern="predict\\(|merge\\(", path=".", output_mode="content"),
    )
    story.result(changes, sample_texts.CHANGES)
    story.result(grepped, sample_texts.CALLERS)
    (edited,) = story.answer(
        use(
            "Edit",
            file_path=f"{sample_code.FOLDER}/CHANGES.md",
            old_string="## Unreleased\n",
            new_string=sample_texts.ENTRY,
        ),
        is_final=False,
    )
    story.result(
        edited,
        "The file has been updated. Here's the result of running `cat -n` on a snippet:\n"
        + sample_texts.ENTRY,
    )
    story.answer(text(sample_texts.DEPENDS))


if __name__ == "__main__":
    TARGET.write_text("\n".join(tell().lines) + "\n", encoding="utf-8")
