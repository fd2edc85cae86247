"""Power that grows: new seeds for as long as there is time, most of them where most is still to be seen."""
