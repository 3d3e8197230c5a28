"""Wire protocols, one folder each; `detect` tells them apart by their first bytes."""
