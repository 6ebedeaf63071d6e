"""All cases by name: functions that make (function, arguments, how many arguments the first results
replace at the next call). The last is None if the function is no program but calls programs."""

import functools

import models
import programs

CASES = dict(programs.PROGRAMS)
for _table in models.FULL, models.SMALL:
    for _name, _entry in _table.items():
        CASES[f'{_name}, forward'] = functools.partial(models.forward_of, _entry)
        CASES[f'{_name}, gradient'] = functools.partial(models.gradient_of, _entry)
