"""error-parity's RelaxedThresholdOptimizer over scores of a fitted learner."""

import numpy as np
from error_parity import RelaxedThresholdOptimizer
from files import serve


class First:
    """The only column is the score."""

    def __call__(self, X):
        return np.asarray(X)[:, 0]


def fit(settings, arrays):
    own = settings["part"] == "validation"
    X, y, group = (arrays[k] for k in (("Xv", "yv", "gv") if own else ("X", "y", "g")))
    model = RelaxedThresholdOptimizer(
        predictor=First(), constraint=settings["constraint"], tolerance=settings["tolerance"]
    )
    model.fit(X=X, y=y, group=group)
    return model, {}


def predict(model, arrays):
    return {"labels": np.asarray(model.predict(arrays["X"], group=arrays["group"])).astype(int)}


serve(fit, predict)
