"""omnifair: classifiers of your own that meet the fairness constraints you declare."""

import importlib
import types

from omnifair import rates
from omnifair.audit import audit
from omnifair.certificate import Certificate, certify, sample_size
from omnifair.constraints import Constraint, Measure, each, gap, overall, ratio
from omnifair.errors import (
    CertificateError,
    DataError,
    DatasetError,
    DeclarationError,
    GroupError,
    InfeasibleError,
    InfeasibleWarning,
    LabelError,
    LearnerError,
    OmnifairError,
    OmnifairWarning,
    ParseError,
    PositiveClassWarning,
    TrainingError,
    UndefinedRateError,
    WeightError,
)
from omnifair.estimator import FairClassifier
from omnifair.groups import groups
from omnifair.language import format_policy, parse, parse_policy, read_policy, write_policy
from omnifair.plugin import PlugInClassifier
from omnifair.rates import coefficients
from omnifair.report import Report
from omnifair.search import (
    BestOf,
    BracketSearch,
    GridSearch,
    GuidedSearch,
    PaperSearch,
    PlugIn,
    Status,
)
from omnifair.validation import ValidationSet

__version__ = "0.1.0"


def __getattr__(name: str) -> types.ModuleType:
    """``omnifair.datasets`` without an import of its own; nothing is loaded before that."""
    if name == "datasets":
        return importlib.import_module("omnifair.datasets")
    raise AttributeError(f"module 'omnifair' has no attribute {name!r}")


__all__ = [
    "BestOf",
    "BracketSearch",
    "Certificate",
    "CertificateError",
    "Constraint",
    "DataError",
    "DatasetError",
    "DeclarationError",
    "FairClassifier",
    "GridSearch",
    "GroupError",
    "GuidedSearch",
    "InfeasibleError",
    "InfeasibleWarning",
    "LabelError",
    "LearnerError",
    "Measure",
    "OmnifairError",
    "OmnifairWarning",
    "PaperSearch",
    "ParseError",
    "PlugIn",
    "PlugInClassifier",
    "PositiveClassWarning",
    "Report",
    "Status",
    "TrainingError",
    "UndefinedRateError",
    "ValidationSet",
    "WeightError",
    "audit",
    "certify",
    "coefficients",
    "each",
    "format_policy",
    "gap",
    "groups",
    "overall",
    "parse",
    "parse_policy",
    "rates",
    "ratio",
    "read_policy",
    "sample_size",
    "write_policy",
]
