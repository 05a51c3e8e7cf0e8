"""Search: one strategy a file, all of them run by the same loop."""

from omnifair.search.best_of import BestOf
from omnifair.search.bracket import BracketSearch
from omnifair.search.grid import GridSearch
from omnifair.search.guided import GuidedSearch
from omnifair.search.loop import Solution, Status, Strategy, search
from omnifair.search.paper import PaperSearch
from omnifair.search.plugin import PlugIn

__all__ = [
    "BestOf",
    "BracketSearch",
    "GridSearch",
    "GuidedSearch",
    "PaperSearch",
    "PlugIn",
    "Solution",
    "Status",
    "Strategy",
    "search",
]
