"""OxonFair's FairPredictor over scores of a fitted learner; the group known or inferred."""

import numpy as np
from files import serve
from oxonfair import FairPredictor
from oxonfair import group_metrics as gm

METRICS = {
    "SP": gm.demographic_parity,
    "FNR": gm.recall.diff,
    "FPR": gm.false_pos_rate.diff,
    "FDR": gm.precision.diff,
    "MR": gm.accuracy.diff,
}


def decide(offset_model, arrays):
    """The decisions of a fitted predictor whose columns are scores (and guesses of the group)."""
    data = arrays["X"]
    if not offset_model.inferred_groups:
        # It asks for a target to be there, and does not look at it.
        data = {"data": data, "groups": arrays["group"], "target": np.zeros(len(data))}
    return np.asarray(offset_model.predict(data)).ravel().astype(int)


class Scores:
    """The first two columns, the learner's probabilities: a copy, as predict adds to them."""

    def __call__(self, data):
        return np.array(data)[:, :2].copy()


class Guesses:
    """The further columns: how likely each group is."""

    def __call__(self, data):
        return np.asarray(data)[:, 2:]


def fit(settings, arrays):
    validation = {"data": arrays["Xv"], "target": arrays["yv"], "groups": arrays["gv"]}
    guesses = Guesses() if arrays["Xv"].shape[1] > 2 else False
    model = FairPredictor(Scores(), validation, inferred_groups=guesses)
    goals = [(METRICS[metric], bound) for metric, bound in settings["bounds"]]
    (metric, bound), others = goals[0], goals[1:]
    model.fit(gm.accuracy, metric, bound, additional_constraints=others)
    model.objective1 = model.objective2 = None  # they hold functions that cannot be pickled
    return model, {}


def predict(model, arrays):
    return {"labels": decide(model, arrays)}


serve(fit, predict)
