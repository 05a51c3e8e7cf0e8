"""scikit-learn's own checks of what an estimator has to do, with no list of exceptions."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from omnifair import FairClassifier, PlugInClassifier, overall
from omnifair.rates import selection_rate

ESTIMATORS = [
    FairClassifier(LogisticRegression()),
    # A constraint that any data can be asked about: it needs no sensitive feature.
    FairClassifier(
        LogisticRegression(), overall(selection_rate) <= 0.9, validation="train", random_state=0
    ),
    PlugInClassifier(LogisticRegression()),
    PlugInClassifier(LogisticRegression(), label_estimator=LogisticRegression()),
]

# Some checks use labels such as "one" and "two", where the positive class is taken by order, and
# say so.
pytestmark = pytest.mark.filterwarnings("ignore::omnifair.PositiveClassWarning")


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks_pass(estimator, check):
    assert check(estimator) is None
