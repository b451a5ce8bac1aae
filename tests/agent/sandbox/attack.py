"""Attacks on the sandbox that an ordinary user has and root has not, as a program: `attack.py FOLDER`.

It needs no library but the standard one, since the interpreter that an ordinary user can start may have none.
Should the sandbox not hold, it harms only what it planted. It prints as JSON who ran it, by which means
commands were held, and the damage, which should be none.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from sevenfold.agent.sandbox.sandbox import SANDBOXED_PROFILES, SandboxBackend, probe_sandbox
from sevenfold.core.settings.sections import SandboxSettings
from sevenfold.core.tool_kinds import SandboxProfile, ToolContext
from tests.agent.sandboxes import make_sandbox, place_in, run_line, ways

SECRET = "hunter2-of-the-user"
ATTEMPTS = """\
# Rights through a namespace of its own, a program that is owned by root, or a second sandbox.
unshare -Ur sh -c 'mount -t tmpfs none {out} && touch {out}/mounted'
unshare -Urm sh -c 'umount -l .git; umount -l AGENTS.md; echo evil > .git/config; echo evil > AGENTS.md'
nsenter -t 1 -m touch {out}/entered
nsenter -t {victim} -U -m touch {out}/entered
su -c 'touch {out}/su' </dev/null; sudo -n touch {out}/sudo; newgrp </dev/null
bwrap --bind / / touch {out}/bwrap; bwrap --dev-bind / / --unshare-user --uid 0 touch {out}/bwrap
# Other processes of the same user.
kill -9 {victim}
cat /proc/{victim}/environ /proc/{agent}/environ /proc/{agent}/mem
cat /proc/{victim}/root{home}/secret; ls /proc/{victim}/cwd/; echo x > /proc/{victim}/cwd/written
python3 -c "import ctypes; print(ctypes.CDLL(None).ptrace(16, {victim}, 0, 0))"
python3 -c "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x')"
# What the user owns, so that no mode of a file stands in the way.
cat {home}/secret; cp {home}/secret copy; ln {home}/secret hard; ln -s {home}/secret soft; cat hard soft
echo evil > {out}/keep; echo evil >> {home}/.bashrc; mkdir {home}/.ssh; touch /tmp/../{out}/up
chmod -R u+rwx .git; echo evil > .git/config; mv .git g; rm -rf .git; ln .git/config h; echo evil >> h
chmod u+w AGENTS.md; echo evil > AGENTS.md; mv AGENTS.md x; rm -f AGENTS.md; ln -sf {out}/keep AGENTS.md
mount -o remount,rw,bind .git; umount -l .git
# Work for later, keys, and doors.
systemd-run --user touch {out}/run
python3 -c "import ctypes; print(ctypes.CDLL(None).syscall(248, b'user', b'k', b'v', 1, -4))"
python3 -c "import socket; socket.socket(socket.AF_UNIX).connect('{out}/door'); print('OPENED')"
python3 -c "import socket; socket.create_connection(('127.0.0.1', 22), 1); print('OPENED')"
(setsid sleep 600 >/dev/null 2>&1 &)
true
"""


def _victim(folder: Path) -> subprocess.Popen[bytes]:
    """A process of the same user, with a secret in its environment."""
    return subprocess.Popen(["sleep", "600"], cwd=folder, env={"TOKEN": SECRET, "PATH": os.environ["PATH"]})


def _plant(folder: Path) -> ToolContext:
    folder.mkdir()
    for name in ("out", "home"):
        (folder / name).mkdir()
    (folder / "out/keep").write_text("kept\n")
    (folder / "home/secret").write_text(SECRET)
    (folder / "home/.bashrc").write_text("kept\n")
    place = place_in(folder)
    (place.root / ".git").mkdir()
    (place.root / ".git/config").write_text("kept\n")
    (place.root / "AGENTS.md").write_text("kept\n")
    return place


def _state(folder: Path, place: ToolContext) -> dict[str, str]:
    """What must stay: everything outside, and what programs obey."""
    files = [*(folder / "out").rglob("*"), *(folder / "home").rglob("*"), *(place.root / ".git").rglob("*")]
    kept = {str(path): path.read_text() for path in files if path.is_file()}
    guide = place.root / "AGENTS.md"
    kept[str(guide)] = "a link" if guide.is_symlink() else guide.read_text() if guide.exists() else "gone"
    return kept


async def _attack(folder: Path, way: SandboxBackend, profile: SandboxProfile) -> list[str]:
    place, victim = _plant(folder), _victim(folder)
    try:
        before = _state(folder, place)
        places = {"{out}": f"{folder}/out", "{home}": f"{folder}/home", "{victim}": str(victim.pid)}
        script = ATTEMPTS.replace("{agent}", str(os.getpid()))
        for sign, value in places.items():
            script = script.replace(sign, value)
        printed = await run_line(make_sandbox(way, SandboxSettings()), profile, script, place)
        after = _state(folder, place)
        changed = (name for name in {**before, **after} if before.get(name) != after.get(name))
        wrong = [f"{name} is {after.get(name)!r}" for name in changed]
        wrong += ["the other process is gone"] if victim.poll() is not None else []
        wrong += ["a secret was shown"] if SECRET in printed.text else []
        wrong += ["a door was opened"] if "OPENED" in printed.text else []
        wrong += [] if printed.ended.code == 0 else [f"the command did not end well: {printed}"]
        return [f"{way}, {profile}: {one}" for one in wrong]
    finally:
        victim.kill()
        victim.wait()


async def _main(folder: Path) -> dict[str, object]:
    probed = await probe_sandbox(SandboxSettings(), os.environ)
    damage: list[str] = []
    for way in ways():
        for profile in SANDBOXED_PROFILES:
            damage += await _attack(folder / f"{way}-{profile}", way, profile)
    return {"uid": os.getuid(), "means": sorted(set(probed.means.values())), "ways": ways(), "damage": damage}


if __name__ == "__main__":
    if os.getuid() == 0:
        sys.exit("run it as an ordinary user: root has other ways")
    sys.stdout.write(json.dumps(asyncio.run(_main(Path(sys.argv[1])))))
