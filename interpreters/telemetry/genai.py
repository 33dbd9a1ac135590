"""The names of the GenAI semantic conventions of OpenTelemetry. They are experimental, so all of them stand here.

They are those of version 1.37 and later of the conventions. A test compares them with the published list.
"""

from typing import Final

OPERATION: Final = "gen_ai.operation.name"
INVOKE_AGENT: Final = "invoke_agent"
"""The operation of a session: one call of an agent program."""

AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"

TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - a name of a metric
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - a name of an attribute
INPUT: Final = "input"
OUTPUT: Final = "output"
"""The values of ``TOKEN_TYPE``."""

TOKEN_BOUNDS: Final = tuple(4**power for power in range(14))
"""The bounds of the buckets of ``TOKEN_USAGE``, as the conventions recommend them."""
