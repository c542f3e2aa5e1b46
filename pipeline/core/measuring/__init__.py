"""Stage 5: sum the partials of a segment, and publish rates with what belongs to them."""
