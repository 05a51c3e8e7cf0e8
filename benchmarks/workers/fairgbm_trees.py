"""FairGBM: boosted trees with multipliers in the loss."""

import numpy as np
from fairgbm import FairGBMClassifier
from files import serve


def fit(settings, arrays):
    model = FairGBMClassifier(
        constraint_type=settings["constraint_type"],
        multiplier_learning_rate=settings["multiplier_learning_rate"],
        n_estimators=settings["n_estimators"],
        num_leaves=15,
        n_jobs=1,
        random_state=0,
        constraint_fnr_slack=settings["slack"],
        constraint_fpr_slack=settings["slack"],
    )
    return model.fit(arrays["X"], arrays["y"], constraint_group=arrays["g"]), {}


def predict(model, arrays):
    scores = np.asarray(model.predict_proba(arrays["X"]))
    scores = scores[:, -1] if scores.ndim == 2 else scores
    return {"labels": (scores > 0.5).astype(int), "scores": scores}


serve(fit, predict)
