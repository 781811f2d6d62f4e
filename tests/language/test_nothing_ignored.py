"""Is a part of a text ever silently ignored?

Each clause of SQL that we know of is put into each place of valid texts, and each word of them is
left out. What comes out must be a refusal or another model; the same model only if what was put
in says nothing.
"""

from __future__ import annotations

import random
import re

import pytest

from driftline import parse
from driftline.errors import DriftlineError

TEXTS = [
    "SELECT * FROM quote WHERE firm = 'IBM' AND price < 10",
    "SELECT * WHERE what = 'alarm' AND level > 3 AND host LIKE 'db-%'",
    "SELECT a , b AS c FROM traffic WHERE x BETWEEN :mx - :r AND :mx + :r AND :on",
    "SELECT * WHERE sqrt ( ( x - :mx ) * ( x - :mx ) ) <= :range OR NOT y IN ( 1 , 2 )",
    "SELECT * FROM load WHERE value > CASE WHEN hour ( now ( ) ) < 8 THEN 80 ELSE 50 END",
    "SELECT price FROM stock WHERE symbol = 'IBM' AND moved ( price , may => 1.5 , must => 2 )",
    "SELECT price FROM stock WHERE crossed ( price , above => 100 , clear => 95 )",
    "SELECT COUNT ( * ) , AVG ( per ) FROM stock WHERE risk IS NOT NULL",
    "SELECT MIN ( per ) FROM stock WHERE risk < 60 HAVING moved ( MIN ( per ) , by => 1 )",
    "SELECT DISTINCT sector FROM stock WHERE t > TIMESTAMP '2026-01-31T09:30:00Z'",
    "SELECT stock.a , news.b FROM stock JOIN news ON stock.a = news.a WHERE stock.p < 10",
    "SELECT * FROM q WHERE s = 'a' THEN SELECT * FROM q WHERE s = 'b' WITHIN 60",
]

CLAUSES = """
LIMIT 1|LIMIT 1, 2|LIMIT 5 BY x|OFFSET 1|OFFSET 1 ROWS|FETCH FIRST 1 ROWS ONLY|TOP 5|TOP (5)
ORDER BY x|ORDER BY x DESC NULLS LAST|SORT BY x|CLUSTER BY x|DISTRIBUTE BY x|GROUP BY x
GROUP BY ALL|GROUP BY ROLLUP (x)|GROUP BY CUBE (x)|GROUP BY GROUPING SETS ((x))|HAVING x > 1
QUALIFY x|WINDOW w AS (PARTITION BY x)|OVER ()|OVER w|FILTER (WHERE x > 1)|WITHIN GROUP (ORDER BY x)
FOR UPDATE|FOR SHARE|FOR UPDATE SKIP LOCKED|LOCK IN SHARE MODE|INTO x|INTO OUTFILE 'x'
TABLESAMPLE (5)|TABLESAMPLE BERNOULLI (5)|USING SAMPLE 5|FINAL|PREWHERE x|SETTINGS a = 1|FORMAT JSON
COLLATE x|COLLATE 'x'|:: INT|:: TIMESTAMP|AT TIME ZONE 'UTC'|ESCAPE '!'|SIMILAR TO 'a'|ILIKE 'a'
ON CONFLICT DO NOTHING|RETURNING *|VALUES (1)|SET x = 1|USING (x)|ON x = 1|NATURAL|LEFT|RIGHT|FULL
OUTER|CROSS|SEMI|ANTI|ASOF|LATERAL|STRAIGHT_JOIN|JOIN u|, u|CROSS JOIN u|LEFT JOIN u ON TRUE
UNION SELECT *|UNION ALL SELECT *|EXCEPT SELECT *|INTERSECT SELECT *|EXCEPT (x)|EXCLUDE (x)
REPLACE (1 AS x)|RENAME (x AS y)|PIVOT (MIN(x) FOR y IN (1))|UNPIVOT (x FOR y IN (z))
MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS x)|CONNECT BY x|START WITH x|LATERAL VIEW explode(x) y
FOR SYSTEM_TIME AS OF x|VERSION AS OF 1|WITH (NOLOCK)|WITH TIES|WITH TOTALS|WITH ROLLUP
USE INDEX (x)|FORCE INDEX (x)|PARTITION (p)|OPTION (HASH JOIN)|ON (x)|DISTINCT|DISTINCT ON (x)|ALL
AS STRUCT|AS VALUE|SQL_NO_CACHE|HIGH_PRIORITY|/*+ HINT */|/*+ HINT(x) */|{# x #}|{{ x }}|{% x %}
IGNORE NULLS|RESPECT NULLS|SYMMETRIC|ASYMMETRIC|ANY|SOME|EXISTS|UNIQUE|ONLY|RECURSIVE|MATERIALIZED
IS NULL|IS NOT NULL|IS TRUE|IS UNKNOWN|ISNULL|NOTNULL|NOT|NOT NOT|AND TRUE|OR FALSE|AND 1|XOR x
BETWEEN 1 AND 2|IN (1)|NOT IN (1)|LIKE 'a'|LIKE ANY ('a')|= 1|== 1|<=> 1|<> 1|-> 'a'|->> 'a'|#> 'a'
+ 1|- 1|* 1|/ 1|% 1|^ 1|\\|\\| 'a'|& 1|~ 1|<< 1|// 1|** 2|+|-|~|!|@|#|$1|?|:p|@p|.x|. x|[0]|[1:2]
'a'|"a"|x|1|1.5|0x1F|X'0F'|N'a'|E'a'|b'1'|TRUE|NULL|CASE|END|WHEN|THEN|ELSE|SELECT|FROM|FROM u|WHERE
THEN SELECT *|WITHIN 5|WITHIN 60|WITHIN|INTERVAL '1' DAY|DATE '2026-01-01'|CURRENT_DATE|AS|AS x
AS 'x'|AS (x, y)|x => 1|by => 1|strict => TRUE|strict => FALSE|INNER|INNER JOIN|(|)|()|(x)|,|;|; ;
; SELECT 1|-- x|/* x */|/* x|*/|*|=>|:=|::|:|.|GLOBAL|HASH|PRIOR x|PRIMARY KEY|DEFAULT|GRANT
DROP TABLE x
""".strip()
INSERTED = sorted(set(re.split(r"(?<!\\)\||\n", CLAUSES)))
INSERTED = [part.replace("\\|", "|") for part in INSERTED]

# What says nothing: parentheses, comments, a closing semicolon, and words that only spell out the
# default.
NEUTRAL = {
    *("(", ")", "()", "-- x", "/* x */", ";", "; ;"),
    *("AS", "INNER", "ALL", "ASYMMETRIC", "strict => FALSE", "AND TRUE"),
}


def _tokens(text: str) -> list[str]:
    return re.findall(r"'[^']*'|\S+", text)


def _model(text: str) -> object:
    try:
        return parse(text)
    except DriftlineError:
        return None


def _is_alias(tokens: list[str], at: int, inserted: str) -> bool:
    """A word after a table's name is another name for it, which the model does not keep."""
    word = inserted.removeprefix("AS ").strip("'\"")
    return at >= 2 and tokens[at - 2] in ("FROM", "JOIN") and word.isidentifier()


def _check_insertion(tokens: list[str], at: int, inserted: str) -> None:
    before = _model(" ".join(tokens))
    # A line break after it, so that a comment to the end of the line ends there.
    text = f"{' '.join(tokens[:at])} {inserted}\n{' '.join(tokens[at:])}"
    after = _model(text)
    if after is not None and after == before:
        assert inserted in NEUTRAL or _is_alias(tokens, at, inserted), text


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_nothing_put_into_a_text_is_ignored(text: str) -> None:
    tokens = _tokens(text)
    assert _model(text) is not None
    for inserted in INSERTED:
        for at in range(len(tokens) + 1):
            _check_insertion(tokens, at, inserted)


def test_nothing_put_into_a_text_at_random_is_ignored(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(3000):
        tokens = _tokens(rng.choice(TEXTS))
        _check_insertion(tokens, rng.randrange(len(tokens) + 1), rng.choice(INSERTED))


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_left_out_of_a_text_goes_unnoticed(text: str) -> None:
    tokens = _tokens(text)
    for width in (1, 2, 3):
        for at in range(len(tokens) - width + 1):
            rest = tokens[:at] + tokens[at + width :]
            left_out = set(tokens[at : at + width])
            changed = _model(" ".join(rest)) != parse(text)
            assert changed or left_out <= {"AS", "(", ")"}, " ".join(rest)
