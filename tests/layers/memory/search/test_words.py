"""A text and a question about it come down to the same words."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.memory.search.lexical import STOP_WORDS, is_talk, spell_words, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("running runs", ["run", "run", "run run"]),
        ("parseHeader", ["parseheader", "pars", "header"]),
        ("parse_header", ["parse_header", "pars", "header"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("What is the budget?", ["budget"]),
        ("the attempt budget", ["attempt", "budget", "attempt budget"]),
        ("Straße prüfen", ["straße", "prüfen", "straße prüfen"]),
        ("x" * 65, []),
        ("部署到生产", ["部署", "署到", "到生", "生产"]),
        ("用pnpm安装 the budget", ["用", "pnpm", "安装", "budget"]),
        ("デプロイ" * 40, ["デプ", "プロ", "ロイ", *["イデ", "デプ", "プロ", "ロイ"] * 39]),
        ("dO", ["d", "o"]),
        ("", []),
    ],
)
def test_a_text_becomes_these_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(st.text(max_size=300))
def test_any_text_becomes_words_that_a_question_can_hold(text: str) -> None:
    words = split_words(text)
    assert all(word and word == word.strip() for word in words)
    assert not STOP_WORDS.intersection(words)
    assert split_words(text) == words


@given(st.lists(st.sampled_from(["budget", "retry", "window", "limit"]), min_size=2, max_size=8))
def test_neighbours_count_as_a_word_of_their_own(words: list[str]) -> None:
    found = split_words(" ".join(words))
    assert sum(" " in word for word in found) == len(words) - 1


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("怎么部署到生产环境?", "部署生产环境之前先运行迁移"),
        ("本番環境へのデプロイは?", "本番環境のデプロイは金曜日に禁止"),
        ("배포는 어떻게 해?", "금요일에는 배포하지 않는다"),
    ],
)
def test_a_question_without_spaces_finds_what_is_written_without_them(question: str, text: str) -> None:
    shared = set(split_words(question)).intersection(split_words(text))
    assert any(not is_talk(word) for word in shared)


@pytest.mark.parametrize("prompt", ["继续", "谢谢", "ありがとう", "감사"])
def test_a_prompt_that_asks_for_nothing_is_talk_in_any_script(prompt: str) -> None:
    assert all(is_talk(word) for word in split_words(prompt))


def test_words_in_common_are_spelled_as_in_the_prompt() -> None:
    asked = "How do we make releases of parseHeader, in Releases?"
    stems = ("releas", "parseheader", "header", "make", "elsewher")
    assert spell_words(asked, stems) == ("releases", "parseHeader", "make", "elsewher")


def test_one_language_of_the_stemmer_is_loaded_and_the_whole_package_stays_as_it_is() -> None:
    code = (
        "import sys\n"
        "from sevenfold.layers.memory.search.lexical import split_words\n"
        "assert 'run' in split_words('running')\n"
        "assert not any('french' in name for name in sys.modules)\n"
        "import snowballstemmer\n"
        "assert snowballstemmer.stemmer('french').stemWord('chevaux') == 'cheval'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
