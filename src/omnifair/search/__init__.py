"""Search: one strategy a file, all of them run by the same loop."""

from omnifair.search.bracket import BracketSearch
from omnifair.search.grid import GridSearch
from omnifair.search.loop import Solution, Status, Strategy, search
from omnifair.search.paper import PaperSearch

__all__ = [
    "BracketSearch",
    "GridSearch",
    "PaperSearch",
    "Solution",
    "Status",
    "Strategy",
    "search",
]
