//! From files of statements to sorted segments, at the speed of the machine.
