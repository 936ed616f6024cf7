-- How far this host shows a source. While the mark is locked, nobody moves it.
SELECT epoch, sequence FROM projected WHERE source = $1::smallint FOR UPDATE
