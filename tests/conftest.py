"""What holds for every test: nobody's home is touched, the cached prefix is not moved unannounced, and in CI
a skipped test is a failed one."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path
from ssl import SSLContext
from typing import TypeVar, cast

import httpcore2
import pytest

from tests.examples import register_profiles
from tests.prefix import pytest_runtest_call

__all__ = ["pytest_runtest_call"]

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

NO_SKIP = "SEVENFOLD_NO_SKIP"
REGISTRY = "registry"
"""The mark of tests that install programs which are not ours: they may be out of reach."""
AUTHORITY = Path(__file__).parent / "authority.pem"
"""A certificate that nobody has the key of."""
FOREIGN = ("SEVENFOLD_", "ANTHROPIC_", "OPENAI_", "CLAUDE_", "DISABLE_", "GIT_")
"""Settings of the person who runs the tests; a test that wants one sets it."""

SYSTEM_FSYNC = os.fsync

register_profiles()


@pytest.fixture(scope="session", autouse=True)
def own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """A home of its own, an identity for git, and none of the caller's settings."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(FOREIGN) and name != NO_SKIP]:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        # A new HTTP client reads every authority that the system trusts, which takes 50 ms.
        patch.setenv("SSL_CERT_FILE", str(AUTHORITY))
        patch.setattr(httpcore2, "default_ssl_context", _trust_environment(httpcore2.default_ssl_context))
        # Only stories and torture cut the power, so nothing else waits for a device.
        patch.setattr(os, "fsync", os.fstat)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for who in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{who}_NAME", "A Tester")
            patch.setenv(f"GIT_{who}_EMAIL", "tester@example.invalid")
        yield


@pytest.fixture(autouse=True)
def real_sync(request: pytest.FixtureRequest) -> Generator[None]:
    """Stories and torture, and the processes that they fork, wait for the device."""
    node = cast("pytest.Item", request.node)
    with pytest.MonkeyPatch.context() as patch:
        if node.get_closest_marker("story") or node.get_closest_marker("torture"):
            patch.setattr(os, "fsync", SYSTEM_FSYNC)
        yield


def pytest_collection() -> None:
    # Half a million objects of modules and tests are made here and stay until the end: the collector would
    # look at them again and again, which is a fifth of the work.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    gc.enable()


def _trust_environment(make: Callable[[], SSLContext]) -> Callable[..., SSLContext]:
    """Also for clients that are told to ignore the environment."""

    def made(**_options: bool) -> SSLContext:
        return make()

    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _unskipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _unskipped((yield))


def _unskipped(report: Report) -> Report:
    # An expected failure is reported as skipped too, and is none.
    may_skip = hasattr(report, "wasxfail") or REGISTRY in getattr(report, "keywords", ())
    if os.environ.get(NO_SKIP) and report.outcome == "skipped" and not may_skip:
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.longrepr = f"skipped where nothing may be skipped ({NO_SKIP}): {reason}"
    return report
