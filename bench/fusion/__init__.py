"""How far graphs are fused: the table of PluS, and what each layer of the partitioner adds."""
