"""What joins cost: the constants of a machine, measured, and the cost models that use them."""

from semistream_lab.cost.corrected import predict
from semistream_lab.cost.prediction import Prediction
from semistream_lab.cost.printed import printed_prediction
from semistream_lab.cost.situation import Situation
from semistream_lab.cost.table_tuning import parameters_for
from semistream_lab.cost.tuner import tune, tune_by_measurement, tuned_parameters
from semistream_lab.cost.tuning import CurvePoint, Tuning

__all__ = [
    "CurvePoint",
    "Prediction",
    "Situation",
    "Tuning",
    "parameters_for",
    "predict",
    "printed_prediction",
    "tune",
    "tune_by_measurement",
    "tuned_parameters",
]
