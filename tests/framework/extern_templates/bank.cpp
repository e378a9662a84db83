#include "framework/extern_templates/bank.hpp"

STELA_COMPILE_AGGREGATE(bank::Account);
STELA_COMPILE_EVENT(bank::Opened);
STELA_COMPILE_EVENT(bank::RateQuoted);
