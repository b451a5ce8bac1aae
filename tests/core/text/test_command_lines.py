"""Commands inside command lines: found however they are dressed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.text.command_lines import has_command, split_commands


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git push origin main --force",
        "cd api && git push",
        "git -C ../api push origin",
        "git -c user.name=x --no-pager push",
        "FOO=1 git push",
        "sudo -E git push",
        "/usr/bin/git push",
        "bash -c 'git push origin main'",
        "ssh host \"sh -c 'git push'\"",
        "echo ready; (git push)",
        "make test | tee log && git push > out.txt 2>&1",
        "git \\\n push",
        "if git status; then git push; fi",
        "timeout 30 git push",
        "'git' push",
        "x=$(git push 2>&1)",
        "git add .\ngit push",
        "ssh host git push",
        "ssh -i key -p 22 ada@host git push",
        "ssh host cd api \\&\\& git push",
        "ssh host <<'EOF'\ncd api\ngit push\nEOF",
        "cat <<EOF | ssh host bash\ngit push\nEOF",
        "bash <<< 'git push'",
        "cat <<EOF\n$(cd api; git push)\nEOF",
        "flock /tmp/lock git push",
        "flock -w 5 /tmp/lock -c 'git push'",
        "env -S 'git push -f'",
        "env -S'A=1 git push'",
        "env --split-string='git push'",
        "find . -name .git -execdir git push \\;",
        "find . -type d -exec git -C {} push \\; -print",
        "ls | xargs -n 1 -I {} git push {}",
        "sudo -u ada -- timeout -k 5 30 git push",
        "chroot /srv git push",
        "nsenter -t 1 -m git push",
        "docker exec -it web git push",
        "docker compose exec web git push",
        "kubectl exec pod -- git push",
        "uv run git push",
        "f() { git push; }",
        "function f { git push; }",
        "ls # all of it\ngit push",
        "echo ${#x} && git push",
        "echo $((1 << x))\ngit push",
        "echo $'it\\'s' ; git push",
        "ls 2>&1 >&- | git push",
        "cat <<A <<B && git push\n1\nA\n2\nB",
        "ls <<A\nx\nA\ngit push",
        "if true; then sudo git push; elif git push; fi",
    ],
)
def test_a_command_is_found_however_it_is_dressed(line: str) -> None:
    assert has_command(split_commands(line), ["git", "push"])


@pytest.mark.parametrize(
    "line",
    [
        "git pull",
        "git commit -m 'git push comes later'",
        "echo git push",
        "grep -rn 'git push' docs",
        "git pushall",
        "legit push",
        "ls # && git push",
        "ls;# git push",
        "cat > notes.md <<EOF\nfirst\ngit push\nEOF",
        "cat <<-'EOF' > a\n\tgit push; $(git push)\n\tEOF\nls",
        "git -C push status",
        "git -c push log",
        "git --git-dir push status",
        "sudo echo git push",
        "ssh host echo git push",
        'git commit -m "see $(date); then git push"',
        "find . -name git -o -name push",
        "",
    ],
)
def test_words_that_only_speak_of_a_command_are_not_it(line: str) -> None:
    assert not has_command(split_commands(line), ["git", "push"])


def test_a_star_stands_for_any_letters_of_one_word() -> None:
    commands = split_commands("python3.12 -m pip install rich")
    assert has_command(commands, ["python*", "-m", "pip", "install"])
    assert not has_command(commands, ["pip*", "install"])


@given(st.text(max_size=300))
def test_any_text_is_split_without_failing(line: str) -> None:
    for command in split_commands(line):
        assert command
        assert has_command([command], [command[0]]) or any(sign in command[0] for sign in "[*?")


@given(st.lists(st.sampled_from(["git", "push", "-C", "a b", "it's", "x\\y"]), min_size=1, max_size=6))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    quoted = ["'" + word.replace("'", "'\\''") + "'" for word in words]
    first = split_commands("run " + " ".join(quoted))[0]
    assert list(first[1:]) == words


@pytest.mark.parametrize(
    "line", ["find . -name '*.pyc' -delete", "find . -exec rm {} +", "ls | xargs rm", "fd -e pyc -x rm"]
)
def test_what_a_search_deletes_is_removed_by_rm(line: str) -> None:
    assert has_command(split_commands(line), ["rm"])


@pytest.mark.parametrize("line", ["sudo rm x", "ssh host ls", "xargs rm", "find . -delete"])
def test_what_runs_another_command_is_a_command_too(line: str) -> None:
    assert has_command(split_commands(line), [line.split(maxsplit=1)[0]])


def test_with_a_depth_of_one_only_what_runs_here_is_told() -> None:
    assert split_commands("sudo make && ssh host make all && bash -c 'make x'", depth=1) == (
        ("sudo", "make"),
        ("make",),
        ("ssh", "host", "make", "all"),
        ("bash", "-c", "make x"),
    )


@pytest.mark.parametrize("part", ["-a b ", "sudo -u ", "find -exec ", "ssh ", "xargs "])
def test_a_long_row_of_words_is_read_as_a_few_commands(part: str) -> None:
    assert len(split_commands("ssh " + part * 10_000)) < 5_000


def test_many_here_documents_that_do_not_end_are_read_as_commands() -> None:
    assert len(split_commands("".join(f"cat <<A{at}\n" for at in range(5_000)))) == 5_000
