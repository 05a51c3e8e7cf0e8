"""AIF360's Reweighing: the weights of the training rows."""

import numpy as np
import pandas as pd
from aif360.algorithms.preprocessing import Reweighing
from aif360.datasets import BinaryLabelDataset
from files import serve


def dataset(y, group):
    """Labels and groups as AIF360 takes them; the features do not matter here."""
    return BinaryLabelDataset(
        df=pd.DataFrame({"y": y.astype(float), "group": group.astype(float)}),
        label_names=["y"],
        protected_attribute_names=["group"],
        favorable_label=1.0,
        unfavorable_label=0.0,
    )


def fit(settings, arrays):
    data = dataset(arrays["y"], arrays["g"])
    method = Reweighing([{"group": 0.0}], [{"group": 1.0}])
    return None, {"weights": np.asarray(method.fit(data).transform(data).instance_weights)}


serve(fit, None)
