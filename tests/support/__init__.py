"""What the tests of every floor share: guards over the test process, and the real things that some tests need."""
