"""Spark's plans as they are printed, read as trees."""

from __future__ import annotations

from holdfast.spark.plan_tree import above, nodes_of, without

PLAN = """== Physical Plan ==
Project [user#2, split(text#3,
, -1) AS lines#4]
+- BroadcastHashJoin [user#2], [user#5], Inner, BuildRight, false, false
   :- *(1) Filter isnotnull(user#2)
   :  +- MapInArrow rows_of_view_0(id#0L)#1, [user#2, text#3], false
   :     +- Range (0, 0, step=1, splits=2)
   +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, string, true]),false), [plan_id=78]
      +- Exchange hashpartitioning(slot#1, 2), ENSURE_REQUIREMENTS, [plan_id=77]
         +- Scan ExistingRDD[user#5,name#6]

"""


def test_nodes_above_a_node() -> None:
    nodes = nodes_of(PLAN)
    assert [node.name for node in nodes] == [
        "Project",
        "BroadcastHashJoin",
        "Filter",
        "MapInArrow",
        "Range",
        "BroadcastExchange",
        "Exchange",
        "Scan",
    ]
    assert [nodes[place].name for place in above(nodes, 3)] == ["Filter", "BroadcastHashJoin", "Project"]
    assert [nodes[place].name for place in above(nodes, 7)] == [
        "Exchange",
        "BroadcastExchange",
        "BroadcastHashJoin",
        "Project",
    ]
    assert above(nodes, 0) == []


def test_what_is_below_a_node_goes_with_it() -> None:
    left = [node.name for node in without(nodes_of(PLAN), frozenset({"BroadcastExchange"}))]
    assert left == ["Project", "BroadcastHashJoin", "Filter", "MapInArrow", "Range"]
