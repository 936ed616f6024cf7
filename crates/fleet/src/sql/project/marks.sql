-- How far this host shows each source.
SELECT source, epoch, sequence FROM projected WHERE source = ANY ($1::smallint[])
