"""The schema a later version might bring: it changes a table that is in use and fills a new one."""

from hub.store.migrations import Migration, available

_FIRST = """
CREATE TABLE dish_count (kitchen TEXT NOT NULL, recipe TEXT NOT NULL, dishes INTEGER NOT NULL) STRICT;
INSERT INTO dish_count SELECT kitchen, id, 0 FROM recipe;
ALTER TABLE outbox ADD COLUMN note TEXT;
"""
_THEN = """
UPDATE dish_count SET dishes = dishes + 1;
CREATE INDEX dish_count_recipe ON dish_count (kitchen, recipe);
"""


def newer(in_the_middle: str = "") -> tuple[Migration, ...]:
    """The program's migrations and one more, with a statement of the caller's in its middle."""
    known = available()
    return (*known, Migration(known[-1].number + 1, "dish_count", _FIRST + in_the_middle + _THEN))
