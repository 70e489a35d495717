"""The screens of the console: they draw rows and pass on wishes; none of them decides."""
