"""Write docs/mutants.md from the results of the mutation campaigns. Run by ``make mutants``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools" / "mutation"))

from mutation_results import PAGE
from rule_results import whole_page

if __name__ == "__main__":
    PAGE.write_text(whole_page())
