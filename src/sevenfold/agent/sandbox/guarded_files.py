"""Names of files that agents take instructions from, or that programs run later: one table, as data.

The measure: something obeys the file although nobody names it, because somebody starts an agent, enters the
folder, opens it in an editor, commits, pushes, or installs packages. A person has to look at a change of such
a file, also where edits are accepted.

Code that runs when somebody runs the project is not in the table: sources, tests and `conftest.py`,
`Makefile`, `package.json`, `pyproject.toml`, `setup.py`, `build.rs`, configuration of linters. They change in
most tasks, a person who runs them asked for it, and a list that asks for everything is answered unread.
`.env` files hold values and no commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class GuardedGroup:
    """Names that are guarded for the same reason.

    A name matches a file or link of that name in any folder. With a slash at the end it matches a folder and
    all that lies in it. Several parts match one after the other, and `*` stands for anything in one part. All
    names are in lower case: they are compared as a disk without case reads them.
    """

    reason: str
    names: tuple[str, ...]


GUARDED_FILES = (
    GuardedGroup(
        "agents take it as instructions",
        (
            *("agents.md", "agents.local.md", "agents.override.md", "agent.md", "replit.md", "devin.md"),
            *("claude.md", "claude.local.md", "gemini.md", "qwen.md", "crush.md", "warp.md"),
            *(".cursorrules", ".windsurfrules", ".clinerules/", ".roorules", ".roomodes", ".rules"),
            *(".continuerules", ".goosehints", ".augment-guidelines", ".aider.conf.yml", ".junie/"),
            *(".claude/", ".cursor/", ".windsurf/", ".roo/", ".continue/", ".gemini/", ".codex/", ".qwen/"),
            *(".goose/", ".opencode/", ".amazonq/", ".kiro/", ".augment/", ".trae/", ".openhands/"),
            *(".factory/", ".kilocode/", ".kilocodemodes", ".cline/", ".pi/", ".vibe/", ".grok/", ".kimi/"),
            *(".rovodev/", ".aiassistant/", ".ruler/", ".devin/", ".serena/", ".claude-plugin/", ".copilot/"),
            *(".firebender/", "firebender.json", ".tabnine/", ".codebuddy/", ".iflow/", ".zencoder/"),
            *(
                ".agents/",
                ".agent/",
                ".crush/",
                "opencode.json",
                "opencode.jsonc",
                "crush.json",
                ".crush.json",
            ),
            *(".github/copilot-instructions.md", ".github/instructions/", ".github/prompts/"),
            *(".github/chatmodes/", ".github/agents/", ".github/skills/", ".github/hooks/"),
            *(".github/copilot/", ".sevenfold/agent-memory/", "codex.md", "opencode.md", "iflow.md"),
            *("codebuddy.md", ".amp/", ".sourcegraph/", ".lingma/", ".qoder/", ".idx/", ".bolt/"),
            *(".openhands_instructions", ".blackboxrules", ".voidrules", ".aider.model.settings.yml"),
            *(".aider.model.metadata.json", ".greptile/", "greptile.json", ".coderabbit.yaml"),
            *(".coderabbit.yml", ".pr_agent.toml", "sweep.yaml", ".sweep.yaml"),
            *(".gitlab/duo/", ".sourcery.yaml", "best_practices.md"),
        ),
    ),
    GuardedGroup("agents start the servers that it names", (".mcp.json", "mcp.json")),
    GuardedGroup(
        "a CI service runs it",
        (
            *(".github/workflows/", ".github/actions/", ".gitlab-ci.yml", ".gitlab/ci/", ".circleci/"),
            *("azure-pipelines.yml", "azure-pipelines.yaml", ".azure-pipelines/", "bitbucket-pipelines.yml"),
            *(".travis.yml", "jenkinsfile", ".drone.yml", ".drone.jsonnet", ".buildkite/", ".woodpecker.yml"),
            *(".woodpecker.yaml", ".woodpecker/", ".forgejo/", ".gitea/", "appveyor.yml", ".appveyor.yml"),
            *(".cirrus.yml", ".cirrus.star", "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml"),
            *(".teamcity/", ".semaphore/", ".ci/", ".readthedocs.yaml", ".readthedocs.yml", "netlify.toml"),
            *(
                ".build.yml",
                ".builds/",
                ".tekton/",
                ".harness/",
                ".vela.yml",
                ".vela/",
                ".zuul.yaml",
                ".zuul.d/",
            ),
            *(".prow.yaml", ".buddy/", "buddy.yml", "bitrise.yml", "codemagic.yaml", "wercker.yml"),
            *("codeship-steps.yml", ".scrutinizer.yml", ".rultor.yml", ".onedev-buildspec.yml", ".dagger/"),
            *("amplify.yml", "vercel.json", "screwdriver.yaml", ".earthly/", ".azuredevops/"),
            *("jenkinsfile.*", "render.yaml", "railway.json", "railway.toml", "nixpacks.toml", "appspec.yml"),
            *("atlantis.yaml", ".spacelift/", ".cnb.yml", ".cnb/", ".platform/", ".platform.app.yaml"),
            *(".ebextensions/", ".do/", ".mergify.yml", ".mergify/", ".kodiak.toml", ".github/settings.yml"),
            *(
                "renovate.json",
                "renovate.json5",
                ".renovaterc*",
                ".github/renovate.*",
                ".github/dependabot.*",
            ),
            *("heroku.yml", "now.json", "fly.toml", ".upsun/", ".gitlab/agents/", "wrangler.toml"),
            *("wrangler.json", "wrangler.jsonc"),
        ),
    ),
    GuardedGroup(
        "git or a tool around it runs commands by it",
        (
            *(".git/", ".hg/", ".svn/", ".jj/", ".husky/", ".githooks/", ".gitconfig", ".gitmodules"),
            *(".gitattributes", ".lfsconfig", ".pre-commit-config.yaml", ".pre-commit-config.yml"),
            *(".pre-commit-hooks.yaml", "lefthook.*", ".lefthook.*", "lefthook-local.*", ".lefthook-local.*"),
            *(".config/lefthook.*", ".lefthook/", ".lefthook-local/", ".overcommit.yml", ".arcconfig"),
            *(".lintstagedrc*", "lint-staged.config.*", ".huskyrc*", "husky.config.*", ".simple-git-hooks.*"),
            *("simple-git-hooks.*", ".git-hooks/", ".hooks/", "prek.toml", "hk.pkl", "captainhook.json"),
            *("grumphp.yml", ".rusty-hook.toml", "commitlint.config.*", ".commitlintrc*", "nano-staged.*"),
            *(".nano-staged.*",),
            # Every folder that git takes for a repository has one, also where no part is called `.git`.
            "head",
        ),
    ),
    GuardedGroup(
        "a shell or an environment manager runs it when somebody enters the folder",
        (
            *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
            *(".inputrc", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc"),
            *(".tcshrc", ".login", ".xinitrc", ".tmux.conf", ".screenrc", ".envrc", ".direnv/"),
            *("mise.toml", ".mise.toml", "mise.*.toml", ".mise.*.toml", ".mise/", ".config/mise/"),
            *(".config/mise.toml", ".rtx.toml", ".tool-versions", "devbox.json", ".flox/", ".autoenv.zsh"),
            *("mise/config.toml", "mise/conf.d/", ".miserc.toml", ".rvmrc", ".shadowenv.d/", ".direnvrc"),
            *(".xprofile", ".xsession", ".xsessionrc", ".pam_environment", ".autoenv_leave.zsh"),
            # Read again, without a question, by an `.envrc` that somebody has allowed.
            *("flake.nix", "shell.nix", "devenv.nix", "devenv.yaml", ".prototools", "aqua.yaml", "aqua.yml"),
            *(".bash_enter", ".bash_leave", ".xonshrc", ".venv/bin/", "venv/bin/", "pyvenv.cfg"),
        ),
    ),
    GuardedGroup(
        "an editor or a development container runs commands by it",
        (
            *(".vscode/", ".idea/", ".vs/", ".zed/", ".fleet/", ".devcontainer/", ".devcontainer.json"),
            *("*.code-workspace", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el"),
            *(".dir-locals-2.el", ".gitpod.yml", ".projections.json", ".helix/", ".nova/", ".nvim/", ".vim/"),
            *(".bsp/", "rust-analyzer.toml", ".rust-analyzer.toml", ".ycm_extra_conf.py", ".luarc.json"),
            *(".luarc.jsonc", ".externaltoolbuilders/", ".replit", ".codesandbox/", ".stackblitzrc"),
            *("omnisharp.json", "replit.nix", ".emacs", ".emacs.d/", ".spacemacs", ".spacemacs.d/"),
            *("*.sublime-project", ".kateproject", ".theia/", ".project", ".settings/", ".gvimrc", "_vimrc"),
            *("_gvimrc", "_exrc", ".solargraph.yml", "node_modules/.bin/"),
        ),
    ),
    GuardedGroup(
        "an interpreter or a debugger runs it by itself",
        (
            *("sitecustomize.py", "usercustomize.py", "site-packages/*.pth", "dist-packages/*.pth"),
            *(".pdbrc", ".pythonrc", ".pythonrc.py", ".ipython/", ".jupyter/", ".gdbinit", ".lldbinit"),
            *(".irbrc", ".pryrc", ".rspec", ".rprofile", ".user.ini", ".htaccess", "bunfig.toml"),
            *(".byebugrc", ".renviron", ".ghci", ".ocamlinit", ".iex.exs", ".erlang", ".perldb", ".octaverc"),
            *(".psqlrc", ".sqliterc", ".mongorc.js", ".mongoshrc.js", ".lessfilter", ".mailcap"),
            *(".procmailrc", ".forward", ".psysh.php", ".latexmkrc", "latexmkrc", ".proverc", "web.config"),
        ),
    ),
    GuardedGroup(
        "a package manager or compiler takes programs or sources from where it says",
        (
            *(".cargo/", "rust-toolchain", "rust-toolchain.toml", ".npmrc", ".yarnrc", ".yarnrc.yml"),
            *(".yarn/releases/", ".yarn/plugins/", ".pnpmfile.cjs", ".pnpmfile.mjs", ".pypirc", "pip.conf"),
            *(
                "uv.toml",
                ".condarc",
                ".gemrc",
                ".bundle/",
                ".mvn/",
                "nuget.config",
                ".bazelrc",
                ".bazelversion",
            ),
            *(
                "tools/bazel",
                ".bazeliskrc",
                ".buckconfig",
                ".buckconfig.local",
                "gradle/wrapper/",
                ".sbtopts",
            ),
            *(".jvmopts", ".swiftpm/", ".terraformrc", ".pip/", "pip.ini", ".pixi/config.toml"),
            *("pnpm-workspace.yaml", ".curlrc", ".wgetrc", ".pnp.cjs", ".pnp.loader.mjs", ".pdm-python"),
            *("directory.build.*", "directory.solution.*", "msbuild.rsp", "gradle.properties", "init.gradle"),
            *("init.gradle.kts", ".terraform/", "terraform.rc"),
        ),
    ),
)

NOT_WHOLE = frozenset({".config", ".pixi", ".venv", ".yarn"})
"""Folders of which only parts are obeyed, and in which ordinary commands write."""


def explain_guarded_name(parts: Sequence[str]) -> str | None:
    """Why a path is obeyed, from its folded names; None: nothing obeys it by itself."""
    if parts and parts[-1] in _NAMES:
        return _NAMES[parts[-1]]
    for part in parts:
        if part in _FOLDERS:
            return _FOLDERS[part]
    return next((entry.reason for entry in _PATHS if entry.matches(parts)), None)


def holds_guarded(top: str) -> bool:
    """Whether a folder at the top of a project may hold such files, so that no command may write in it."""
    return top in _HEADS


SHORT_NAME = re.compile(r"([^.~]{1,6})~\d{1,2}(?:\.([^.]{0,3}))?")
"""As file systems of Windows give each long name a second one: `CLAUDE~1.MD`, `GIT~1`."""
_HASHED = re.compile("[0-9a-f]{3,4}")
"""After four of the same beginning, two letters are followed by a hash: `GI7EBA~1`."""
_NO_SHORT = str.maketrans("+,;=[]", "_" * 6, ". ")


def may_be_short(part: str, more: Iterable[str] = ()) -> bool:
    """Whether a folded name can be the short one of a part of a guarded path, or of one of `more`."""
    found = SHORT_NAME.fullmatch(part)
    if found is None:
        return False
    base, ending = found[1], found[2] or ""
    return any(_shortens(base, ending, name) for name in (*_PARTS, *more))


def _shortens(base: str, ending: str, name: str) -> bool:
    stem, dot, extension = name.lstrip(".").rpartition(".")
    if not dot:
        stem, extension = extension, ""
    has_any = "*" in extension or ("*" in stem and not dot)
    if not has_any and extension[:3] != ending:
        return False
    known, star, _ = stem.translate(_NO_SHORT).partition("*")
    is_cut = known.startswith(base) and len(base) >= min(len(known), 5)
    is_hashed = base[:2] == known[:2] and _HASHED.fullmatch(base[2:]) is not None
    return is_cut or is_hashed or (bool(star) and base.startswith(known))


@dataclass(frozen=True, slots=True)
class _Path:
    """A name of several parts, or with a `*` in it."""

    parts: tuple[str, ...]
    is_folder: bool
    reason: str

    def matches(self, parts: Sequence[str]) -> bool:
        size = len(self.parts)
        last = len(parts) - size
        starts = range(last + 1) if self.is_folder else range(max(last, 0), last + 1)
        return any(all(map(fnmatchcase, parts[at : at + size], self.parts)) for at in starts)


def _all_names() -> Iterator[tuple[str, str]]:
    return ((name, group.reason) for group in GUARDED_FILES for name in group.names)


def _is_plain(name: str) -> bool:
    return "/" not in name.rstrip("/") and "*" not in name


_PARTS = frozenset(part for name, _ in _all_names() for part in name.rstrip("/").split("/"))
_NAMES = {name: reason for name, reason in _all_names() if _is_plain(name) and not name.endswith("/")}
_FOLDERS = {name[:-1]: reason for name, reason in _all_names() if _is_plain(name) and name.endswith("/")}
_PATHS = tuple(
    _Path(tuple(name.rstrip("/").split("/")), name.endswith("/"), reason)
    for name, reason in _all_names()
    if not _is_plain(name)
)
_HEADS = (
    frozenset(path.parts[0] for path in _PATHS if len(path.parts) > 1 and path.parts[0].startswith("."))
    - NOT_WHOLE
)
