"""Control: policies that bring a body where a picture shows it, held against two baselines."""
