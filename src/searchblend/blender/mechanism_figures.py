"""The names and public figures of both groups' mechanisms, as every release of a method states them."""

from __future__ import annotations

from collections.abc import Sequence

from searchblend.blender.best.choose_design import Forecast
from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.threshold import Threshold

MechanismFigures = dict[str, dict[str, object]]


def paper_figures(threshold: Threshold, probabilities: ReportProbabilities, params: BlenderParams) -> MechanismFigures:
    """Of the method as printed; the variances assume one report a client."""
    return {
        "optin": {
            "name": "discrete Laplace threshold, then fresh counts of other users",
            "threshold": threshold.printed,
            "integer_threshold": threshold.integer,
            "selection_delta": threshold.single_person_rate,
            "noise_scale": threshold.noise.scale,
        },
        "client": {
            "name": "two-stage randomized response",
            "cells_per_report": params.records_per_client,
            "keep_query": probabilities.keep_query,
            "variances_valid": params.records_per_client == 1,
        },
    }


def best_figures(
    curator: CuratorDesign,
    design: ReportDesign,
    head: HeadList,
    params: BlenderParams,
    forecasts: Sequence[Forecast] = (),
) -> MechanismFigures:
    """Of method ``best``; ``forecasts`` are the designs that were compared where the release is made in one go."""
    queries, cells = design.about_queries(head, params), design.about_cells(head, params)
    return {
        "optin": {
            "name": "stability histogram with residual counts",
            "threshold": curator.threshold.printed,
            "integer_threshold": curator.threshold.integer,
            "selection_delta": curator.selection_delta,
            "noise_scale": curator.threshold.noise.scale,
            "units_per_user": curator.spread.units,
            "residual_clip": curator.clip,
            "residual_noise_scale": curator.residual_noise.scale,
            "wide_threshold": curator.wide_threshold.integer if curator.wide_threshold else None,
        },
        "client": {
            "name": design.mechanism,
            "cells_per_report": params.records_per_client,
            "query_share": design.query_share,
            "query_subset": design.query_subset if queries else None,
            "cell_subset": design.cell_subset if cells else None,
            "keep_query": queries.include if queries else None,
            "keep_cell": cells.include if cells else None,
            "variances_valid": params.records_per_client == 1,
            "compared": [
                {
                    "name": entry.design.mechanism,
                    "query_share": entry.design.query_share,
                    "predicted_query_l1": entry.query_l1,
                    "predicted_record_l1": entry.record_l1,
                }
                for entry in forecasts
            ],
        },
    }
