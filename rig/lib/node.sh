# shellcheck shell=bash
nodes_down_all() { :; }
