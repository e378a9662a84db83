// All of stela::eventstore.
#pragma once

#include <stela/eventstore/async.hpp>
#include <stela/eventstore/detail/owned_append.hpp>
#include <stela/eventstore/operations.hpp>
#include <stela/eventstore/operator_action.hpp>
#include <stela/eventstore/postgres.hpp>
#include <stela/eventstore/sql.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/eventstore/tags.hpp>
#include <stela/eventstore/transfer.hpp>
#include <stela/eventstore/verify.hpp>
