"""A plain and a fair model on the same data, compared on people that neither has seen.

Run it with ``make demo``. The data are Adult: who earns more than 50,000 dollars a year? Where no
source of them can be reached, synthetic loan applicants take their place, and the output says so.
"""

import warnings

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from omnifair import DatasetError, FairClassifier, OmnifairWarning, gap
from omnifair.datasets import adult, make_lending
from omnifair.rates import selection_rate

# 1. Data: features, labels, and the sensitive columns, which the models are not given.
by = "sex"
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OmnifairWarning)  # an incomplete copy: shown below anyway
        data = adult()
except (DatasetError, ImportError) as error:
    print(f"Adult could not be had, so these are SYNTHETIC data instead.\n{error}\n")
    data, by = make_lending(45_000, random_state=0), "group"

X, X_test, y, y_test, people, people_test = train_test_split(
    data.X, data.y, data.sensitive_features, test_size=1 / 3, random_state=0
)

# 2. Any classifier: here a pipeline.
plain = make_pipeline(
    make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    ),
    LogisticRegression(max_iter=1000),
)

# 3. The same classifier, and what is asked of it.
constraint = gap(selection_rate, by=by) <= 0.03
fair = FairClassifier(plain, constraint, random_state=0)

plain.fit(X, y)
fair.fit(X, y, sensitive_features=people)


# 4. Both on the untouched third. To predict takes no sensitive column.
def row(name, model, trainings):
    """One line of the table."""
    chosen = model.predict(X_test)
    rates = [chosen[people_test[by] == group].mean() for group in groups]
    cells = [(chosen == y_test).mean(), *rates, max(rates) - min(rates)]
    return f"{name:<8}{''.join(f'{cell:>12.4f}' for cell in cells)}{trainings:>12}"


groups = sorted(people_test[by].unique())
reached = fair.report().asked[0].reached
heads = ["accuracy", *(f"P({group})" for group in groups), "gap", "trainings"]
print(f"data         {data.name}: {data.source}")
print(f"constraint   {constraint}")
print(f"rows         {len(X):,} to train and validate, {len(X_test):,} untouched to compare")
print()
print(f"{'model':<8}{''.join(f'{head:>12}' for head in heads)}")
print(row("plain", plain, 1))
print(row("fair", fair, fair.report().trainings))
print()
print("P(group) is the share of the group that is predicted positive: its selection rate.")
print(
    f"The constraint was met on the validation rows, with a gap of {reached:.4f}; "
    "on other people the gap varies."
)
