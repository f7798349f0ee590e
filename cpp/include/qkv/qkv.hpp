// Everything.
#pragma once

#include "qkv/activation.hpp"
#include "qkv/attention.hpp"
#include "qkv/embedding.hpp"
#include "qkv/linear.hpp"
#include "qkv/mask.hpp"
#include "qkv/norm.hpp"
#include "qkv/positional.hpp"
#include "qkv/recurrent.hpp"
#include "qkv/rotary.hpp"
#include "qkv/softmax.hpp"
#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"
