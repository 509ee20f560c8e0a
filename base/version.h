/* version.h - the version of the whole program; the makefile reads it from here */
#ifndef OTARI_BASE_VERSION_H
#define OTARI_BASE_VERSION_H
#define OTARI_VERSION "0.1.0"
#endif
