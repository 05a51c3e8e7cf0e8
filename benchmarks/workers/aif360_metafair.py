"""AIF360's MetaFairClassifier. The group is handed over, but is not among the features."""

import numpy as np
import pandas as pd
from aif360.algorithms.inprocessing import MetaFairClassifier
from aif360.datasets import BinaryLabelDataset
from files import serve


def dataset(X, y, group):
    data = BinaryLabelDataset(
        df=pd.DataFrame({"y": y.astype(float), "group": group.astype(float)}),
        label_names=["y"],
        protected_attribute_names=["group"],
        favorable_label=1.0,
        unfavorable_label=0.0,
    )
    data.features = X
    return data


def fit(settings, arrays):
    method = MetaFairClassifier(
        tau=settings["tau"], sensitive_attr="group", type=settings["type"], seed=0
    )
    method.fit(dataset(arrays["X"], arrays["y"], arrays["g"]))
    return method.model, {}


def predict(model, arrays):
    scores = np.asarray(model(arrays["X"])).ravel()
    return {"labels": (scores > 0).astype(int), "scores": scores}


serve(fit, predict)
