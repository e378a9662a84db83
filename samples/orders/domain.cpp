// Compiles the domain's templates once, so that other files compile faster.
#include "order.hpp"
#include "payment.hpp"
#include "stock.hpp"

STELA_COMPILE_AGGREGATE(orders::Customer);
STELA_COMPILE_AGGREGATE(orders::Order);
STELA_COMPILE_AGGREGATE(orders::Stock);
STELA_COMPILE_EVENT(orders::CustomerRegistered);
STELA_COMPILE_EVENT(orders::OrderPlaced);
STELA_COMPILE_EVENT(orders::OrderPaid);
STELA_COMPILE_EVENT(orders::OrderReminded);
STELA_COMPILE_EVENT(orders::OrderShipped);
STELA_COMPILE_EVENT(orders::OrderCancelled);
STELA_COMPILE_EVENT(orders::PaymentReceived);
STELA_COMPILE_EVENT(orders::PaymentDeclined);
