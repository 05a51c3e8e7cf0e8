"""scikit-lego's DemographicParityClassifier and EqualOpportunityClassifier.

The group stands in the last column, which both leave out of the features.
"""

import numpy as np
from files import serve
from sklego.linear_model import DemographicParityClassifier, EqualOpportunityClassifier


def fit(settings, arrays):
    X = np.c_[arrays["X"], arrays["g"]]
    common = {
        "covariance_threshold": settings["covariance_threshold"],
        "sensitive_cols": [X.shape[1] - 1],
        "penalty": settings["penalty"],
        "C": settings["C"],
        "train_sensitive_cols": False,
    }
    if settings["metric"] == "SP":
        model = DemographicParityClassifier(**common)
    else:
        model = EqualOpportunityClassifier(positive_target=1, **common)
    return model.fit(X, arrays["y"]), {}


def predict(model, arrays):
    X = np.c_[arrays["X"], np.zeros(len(arrays["X"]))]
    scores = np.asarray(model.decision_function(X)).ravel()
    return {"labels": (scores > 0).astype(int), "scores": scores}


serve(fit, predict)
