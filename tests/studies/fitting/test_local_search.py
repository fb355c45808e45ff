"""A search that goes on though theta hardly moves ends by the intervals."""

from studies.fitting.local_search import LocalSearch
from studies.optimizers.problem import Status
from studies.problem.making import make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from tests.studies.fitting.twins import GRAVITY, LENGTH, twin


def test_a_search_ends_where_it_moves_by_little_of_the_intervals(tmp_path):
    problem = make_problem(twin()).everything
    start = problem.parameters.theta([1.01 * LENGTH, 0.99 * GRAVITY])
    how = Search(tolerance=1e-15, max_evaluations=10)  # three steps, of which the last are small

    def end(floor, how=how):
        folder = RunFolder(tmp_path / f"{floor}-{how.max_evaluations}")
        with EvaluationProgress(how.max_evaluations) as progress:
            search = LocalSearch(how, folder, progress, floor=floor)
            return search.run(problem, start, log="a.jsonl", stage="a")

    assert end(0.0).status is Status.MAX_EVALUATIONS  # the film has no noise, nor have intervals
    assert end(0.015).status is Status.SETTLED
    assert (end(0.015).theta == end(0.0).theta).all()
    far = Search(tolerance=1e-15, max_evaluations=4)
    assert end(0.015, far).status is Status.MAX_EVALUATIONS  # its steps are long still
