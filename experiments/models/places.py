"""The places that the shipped models were trained on."""

PLACES = (
    "castle",
    "brighton",
    "lund",
    "conch",
    "banana",
    "lewis",
    "garfield",
    "seneca",
    "orchard",
)
