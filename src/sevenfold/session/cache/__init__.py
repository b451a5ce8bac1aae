"""The prompt cache: where breakpoints go, how breaks of the prefix are found, and what was billed.

- `placement`: the settings, and where to place breakpoints in one request.
- `breakpoints`: the last step of a request, and its breakpoints from request to request.
- `comparer`: where a request differs from the one before it.
- `monitor`: checks every request and every bill, and sums up usage and cost.
"""
