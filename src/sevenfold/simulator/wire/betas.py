"""The beta header: which values the API knows, and which of them enable something here."""

from __future__ import annotations

THINKING_BINDING = "thinking-binding-controls-2026-08-01"
CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"
COMPACT_ON_DEMAND = "compact-2026-09-04"
COMPACT_THRESHOLD = "compact-2026-01-12"
CONTEXT_EDITS = "context-management-2025-06-27"
INLINE_TOOLS = "inline-tools-2026-09-15"
PER_TURN_CONTROL = "per-turn-control-2026-07-01"
SYSTEM_EFFORT = "mid-conversation-output-config-2026-07-01"
TASK_BUDGETS = "task-budgets-2026-03-13"
THINKING_UPDATES = "thinking-display-updates-2026-08-18"
THREADS = "message-threads-2026-08-12"
TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"

KNOWN_BETAS = frozenset(
    {
        *(
            THINKING_BINDING,
            CLEAR_AT,
            COMPACT_ON_DEMAND,
            COMPACT_THRESHOLD,
            CONTEXT_EDITS,
            INLINE_TOOLS,
            PER_TURN_CONTROL,
            SYSTEM_EFFORT,
        ),
        *(TASK_BUDGETS, THINKING_UPDATES, THREADS, TOOL_CHANGES),
        "admin-user-sign-out-2026-10-08",
        "advanced-tool-use-2025-11-20",
        "advisor-tool-2026-03-01",
        "agent-memory-2026-07-22",
        "analytics-usage-cost-2026-08-24",
        "cache-diagnosis-2026-04-07",
        "ce-plugins-2026-09-01",
        "ce-user-management-2026-07-13",
        "claude-code-20250219",
        "code-execution-2025-05-22",
        "computer-use-2024-10-22",
        "computer-use-2025-01-24",
        "computer-use-2025-11-24",
        "context-1m-2025-08-07",
        "dev-full-thinking-2025-05-14",
        "dreaming-2026-04-21",
        "effort-2025-11-24",
        "experimental-claude-tag-2026-10-21",
        "extended-cache-ttl-2025-04-11",
        "fallback-credit-2026-06-01",
        "fallback-credit-2026-07-01",
        "fast-mode-2026-02-01",
        "files-api-2025-04-14",
        "fine-grained-tool-streaming-2025-05-14",
        "interleaved-thinking-2025-05-14",
        "managed-agents-2026-04-01",
        "mcp-client-2025-04-04",
        "mcp-client-2025-11-20",
        "mcp-client-2026-09-15",
        "mcp-tunnels-2026-06-22",
        "message-batches-2024-09-24",
        "model-context-window-exceeded-2025-08-26",
        "oauth-2025-04-20",
        "output-128k-2025-02-19",
        "output-300k-2026-03-24",
        "pdfs-2024-09-25",
        "prompt-caching-2024-07-31",
        "server-side-fallback-2026-06-01",
        "server-side-fallback-2026-07-01",
        "skills-2025-10-02",
        "spend-limit-reads-2026-09-26",
        "structured-outputs-2025-11-13",
        "telemetry-destinations-2026-08-11",
        "thinking-token-count-2026-05-13",
        "token-counting-2024-11-01",
        "token-efficient-tools-2025-02-19",
        "user-profiles-2026-03-24",
        "user-profiles-2026-08-18",
        "user-profiles-2026-09-04",
        "webhooks-2026-10-07",
    }
)
"""Values that the official SDK and Claude Code send; another is a 400."""
