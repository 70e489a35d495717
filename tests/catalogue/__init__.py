"""The catalogue: every shipped contract held against the documented facts of its API.

`provider-facts.json` holds the facts, `further-facts.json` those of APIs that came later, in the same form; `python -m
tests.catalogue` prints the scoreboard, `python -m tests.catalogue NAME` one contract with the answer that stands for
each state. What the facts alone cannot say stands in `extra/ID.json`:

- the job: `job_id`, `base_url`, `urls`, `params`, `status_url`, `seen` (what `remember` kept);
- answers: `answer` (status, headers, step of every answer), `base` (laid under every body), `ended` (laid under
  bodies of a success), `answers` (by state, where the documented expression cannot be turned round; `"whole": true`:
  nothing is laid under it), `samples` (by state: step and the like; a `body` is laid
  over the sample's, as where its made-up address is no origin), `qualified` (by state: what makes it partial),
  `without` (by required field: the answer that lacks it), `contradicted` (by `forbids`: the body that it forbids),
  `also` (further answers with their verdict), `stops` (answers that must stop), `handover` (headers, body and job id
  of a submission's answer), `result` (fields of the result request);
- reasons, each of more than 30 characters: `deviations` (by state: another verdict than the category), `not_used` (by
  need), `not_required` (by result field), `no_cancel`, `no_mixture`, `wildcards` (by origin).
"""
